-- Finds commands that are due. The reservations of a scope (`reserved`) are ordered by deadline, so they are also the
-- index of deadlines. `scopedue` says which scopes to search: it has the hash of each scope, ordered by a time that is
-- never later than the scope's earliest deadline. An admission lowers that time, and a search for due commands raises
-- it. An end leaves it as it is, so most calls write nothing here. `connectdue` has the commands that were never
-- queued, ordered by connect deadline. Each is named by its deadline (13 digits), its client's hash and its id.
-- needs: lib-commands

-- One search reads at most `limit` plus this many scopes. It raises the time of each scope without due commands, so the
-- next search reaches other scopes.
lib.due_scopes = 256
-- One search stops once it has found `limit` times this many commands.
lib.due_spare = 10

-- Returns the name that a command which was never queued has in `connectdue`.
lib.due_name = function(rec)
  return string.format('%013d', tonumber(rec.deadline)) .. rec.name
end

-- Adds a command to the indexes of deadlines when it is admitted.
lib.due_add = function(rec)
  lower(key('scopedue'), rec.deadline, rec.sh)
  if not rec.queuedAt then put(key('connectdue'), rec.connectDeadline, lib.due_name(rec)) end
end

-- Removes a command from `connectdue`, because its connect deadline no longer counts. Called when the command is queued
-- for the first time, or ends before that.
lib.due_connected = function(rec)
  drop(key('connectdue'), lib.due_name(rec))
end

-- Adds the due commands of a scope to `found`. If none is due, the scope is searched again at its earliest deadline.
lib.due_in_scope = function(sh, limit, found)
  local reserved = key('reserved', sh)
  local due = call('ZRANGEBYSCORE', reserved, '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do lib.due_found(found, due[i], due[i + 1]) end
  if #due > 0 then return end
  local first = call('ZRANGE', reserved, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', key('scopedue'), first[2], sh) else call('ZREM', key('scopedue'), sh) end
end

-- Adds the commands that are past their connect deadline to `found`.
lib.due_unconnected = function(limit, found)
  local due = call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do
    local rec = lib.commands_live(string.sub(due[i], 14, 35), string.sub(due[i], 36))
    if rec then lib.due_found(found, lib.commands_name(rec), due[i + 1])
    else call('ZREM', key('connectdue'), due[i]) end
  end
end

lib.due_found = function(found, name, since)
  if found.known[name] then return end
  found.known[name] = true
  found.list[#found.list + 1] = { since = tonumber(since), name = name }
end

-- Finds the commands past their connect deadline or deadline. Returns a list of names, the longest due first, each with
-- the time since when its command is due. The list has at least `limit` names if there are that many. The second result
-- says whether the same search would find more in other scopes.
lib.due_find = function(limit)
  local found, budget = { list = {}, known = {} }, limit + lib.due_scopes
  lib.due_unconnected(limit, found)
  local scopes = call('ZRANGEBYSCORE', key('scopedue'), '-inf', text(now), 'LIMIT', 0, budget)
  for _, sh in ipairs(scopes) do
    if #found.list >= limit * lib.due_spare then break end
    lib.due_in_scope(sh, limit, found)
  end
  table.sort(found.list, function(a, b) return a.since < b.since end)
  return found.list, #scopes == budget and #found.list < limit
end

-- Counts the commands that were never queued and are past their connect deadline, but not past their deadline.
lib.due_count_unconnected = function()
  local count = 0
  for _, member in ipairs(call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now))) do
    if tonumber(string.sub(member, 1, 13)) > now then count = count + 1 end
  end
  return count
end

-- How commands are found: by deadline, in spans of time, and by the time of admission. commands/record.ts says how a
-- record is written.

-- library: lib-due
-- Finds commands that are due. The reservations of a scope (`reserved`) are ordered by deadline, so they are also the
-- index of deadlines. `scopedue` says which scopes to search: it has the hash of each scope, ordered by a time that is
-- never later than the scope's earliest deadline. An admission lowers that time, and a search for due commands raises
-- it. An end leaves it as it is, so most calls write nothing here. `connectdue` has the commands that were never
-- queued, ordered by connect deadline. Each is named by its deadline (13 digits), its client's hash and its id.

-- One search reads at most `limit` plus this many scopes. It raises the time of each scope without due commands, so the
-- next search reaches other scopes.
lib.due_scopes = 256
-- One search stops once it has found `limit` times this many commands.
lib.due_spare = 10

-- Adds the due commands of a scope to `found`. If none is due, the scope is searched again at its earliest deadline.
lib.due_in_scope = function(sh, limit, found)
  local reserved = key('reserved', sh)
  local due = call('ZRANGEBYSCORE', reserved, '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do lib.due_found(found, due[i], due[i + 1]) end
  if #due > 0 then return end
  local first = call('ZRANGE', reserved, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', key('scopedue'), first[2], sh) else call('ZREM', key('scopedue'), sh) end
end

-- Captures the name of a command, `<user>NUL<client>NUL<command>`: the 5th to 7th field of its request.
lib.due_name = '^%Z*%z%Z*%z%Z*%z%Z*%z(%Z*%z%Z*%z%Z*)%z'

-- Adds the commands that are past their connect deadline to `found`.
lib.due_unconnected = function(limit, found)
  local due = call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do
    local request = call('HGET', key('client', string.sub(due[i], 14, 35)), 'a' .. string.sub(due[i], 36))
    if request then lib.due_found(found, string.match(request, lib.due_name), due[i + 1])
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

-- library: lib-ended
-- Stores and reads ended commands. Their records and results are in keys by user and span of time (see lib-spans).
-- A span of records is half as long as the idempotency window. Each record says when it is forgotten. After
-- that time it is ignored, although it stays in Redis until its span is removed.
-- needs: lib-spans

-- Counts the ended commands whose records are not forgotten yet. The count is exact to the second.
lib.ended_count = function()
  local flat, count, second = call('HGETALL', key('endedcount')), 0, math.floor(now / 1000)
  for i = 1, #flat, 2 do
    if tonumber(flat[i]) > second then count = count + tonumber(flat[i + 1]) end
  end
  return count
end

-- Removes the counts of records that were to be forgotten in past seconds.
lib.ended_sweep_counts = function()
  local second, swept = math.floor(now / 1000), tonumber(call('HGET', KEYS[1], 'counted') or 0)
  if swept >= second then return end
  if call('EXISTS', key('endedcount')) == 1 then
    local past = {}
    for _, field in ipairs(call('HKEYS', key('endedcount'))) do
      if tonumber(field) <= second then past[#past + 1] = field end
    end
    for i = 1, #past, 1000 do call('HDEL', key('endedcount'), unpack(past, i, math.min(#past, i + 999))) end
  end
  call('HSET', KEYS[1], 'counted', text(second))
end

-- Removes at most `limit` spans whose time is over. Returns true if there are more.
lib.ended_sweep = function(limit)
  lib.ended_sweep_counts()
  return lib.spans_sweep(limit)
end

-- library: lib-spans
-- Spans of time. The records, names and results of a user's commands are in keys. Each key holds one span of time and
-- is removed as a whole. `spans:<user's hash>` has the spans of a user, by when they are removed; `endedspans` has
-- those of all users. The name of a span says what its key holds and when the span began: `<began>.<window>` records of
-- commands that ended in it; `n<began>.<window>` names of commands that were admitted in it; `r<began>` results of
-- commands that ended in it. `window` is the idempotency window of those records: records with different windows never
-- share a span.
-- needs: lib-shares

-- Reads the spans of a user, ordered by time of removal, the latest first. `ended`: a list of the spans of records;
-- `named`: a list of the spans of names.
lib.spans_of = function(uh)
  local spans = { ended = {}, named = {} }
  for _, name in ipairs(call('ZREVRANGE', key('spans', uh), 0, -1)) do
    local list = ({ [''] = spans.ended, n = spans.named })[string.match(name, '^%l?')]
    if list then list[#list + 1] = name end
  end
  return spans
end

-- Returns the key that holds a user's span. `spans_parts` has the parts of the names that this call has used.
lib.spans_parts = {}
lib.spans_key = function(uh, name)
  local of = lib.spans_parts[name]
  if not of then
    local letter = string.match(name, '^%l')
    of = { kind = ({ n = 'names', r = 'results' })[letter] or 'ended', began = letter and string.sub(name, 2) or name }
    lib.spans_parts[name] = of
  end
  return key(of.kind, uh, of.began)
end

-- Removes at most `limit` spans whose time is over. Returns true if there are more.
lib.spans_sweep = function(limit)
  local over = call('ZRANGEBYSCORE', key('endedspans'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  for i = 1, math.min(limit, #over) do
    local uh, name, userId = string.match(over[i], '^(%Z*)%z(%Z*)%z(.*)$')
    call('UNLINK', lib.spans_key(uh, name))
    local counted = ({ n = 'm', r = 'r' })[string.match(name, '^%l?')]
    if counted then lib.shares_return(counted, uh, name) end
    call('ZREM', key('spans', uh), name)
    call('ZREM', key('endedspans'), over[i])
    if call('EXISTS', key('spans', uh)) == 0 then call('ZREM', key('cmdusers'), userId .. '\0' .. uh) end
  end
  return #over > limit
end

-- library: lib-newest
-- The index of commands by time of admission: each hour has a ZSET of the commands that were admitted in it. Admissions
-- remove the names of commands that are gone, and the key of each hour expires.

lib.newest_hour = 3600000

-- Returns the start of the hour that a time (ms) is in, as text.
lib.newest_of = function(at)
  return text(at - at % lib.newest_hour)
end

lib.newest_key = function(at)
  return key('admitted', lib.newest_of(at))
end

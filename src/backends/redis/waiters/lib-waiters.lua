-- Waiters: callers that wait on a command. A row stands in the hash of its command, and by its place (when it came, then in which order)
-- in the indexes: so listings begin after a place, and no row moves.
-- needs: lib-commands, lib-nodes, lib-record

-- Whether the record has come as far as is waited for.
lib.commands_satisfied = function(waitFor, rec)
  local ranks = { admitted = 0, queued = 1, dispatched = 2, acknowledged = 3, terminal = 4 }
  local stages = { admitted = 'admitted', acknowledged = 'acknowledged', completed = 'terminal' }
  return ranks[rec.stage] >= ranks[stages[waitFor]]
end

lib.waiters_count = function(kh)
  return call('HLEN', key('waiters', kh))
end

-- A row as its text: each field with a NUL behind it.
lib.waiters_text = function(row)
  local nul = '\0'
  return row.place .. nul .. row.uh .. nul .. row.ch .. nul .. row.callerNodeId .. nul .. row.waitFor .. nul .. row.createdAt .. nul ..
    row.timesOutAt .. nul
end

lib.waiters_parse = function(whole)
  local place, uh, ch, callerNodeId, waitFor = string.match(whole, '^(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z')
  return { place = place, uh = uh, ch = ch, callerNodeId = callerNodeId, waitFor = waitFor }
end

-- Registers a wait, once for each rpc id, and answers its text. `withinMs` nil: as long as the command may live.
lib.waiters_add = function(rec, rpcId, callerNode, waitFor, withinMs)
  local rows = key('waiters', rec.kh)
  local timesOutAt = tonumber(rec.deadline)
  if withinMs then timesOutAt = math.min(now + withinMs, timesOutAt) end
  local order = lib.waiters_order()
  local row = {
    place = string.format('%015d:%012d:', now, order) .. rec.kh .. ':' .. rpcId,
    uh = rec.uh,
    ch = rec.ch,
    callerNodeId = callerNode,
    waitFor = waitFor,
    createdAt = text(now),
    timesOutAt = text(timesOutAt),
  }
  local whole = lib.waiters_text(row)
  if call('HSETNX', rows, rpcId, whole) == 0 then return call('HGET', rows, rpcId) end
  if waitFor == 'acknowledged' and not rec.awaited then lib.commands_note(rec, { awaited = '1' }) end
  put(key('waits'), '0', row.place)
  put(key('userwaits', rec.uh), '0', row.place)
  put(key('clientwaits', rec.ch), '0', row.place)
  join(key('nodewaits', callerNode), rec.kh .. ':' .. rpcId)
  return whole
end

-- Numbers in order; a call takes 32 at a time, as many as its acts may need.
lib.waiters_order = function()
  local many = grouping and 32 or 1
  local orders = fact('orders', function() return { upTo = call('HINCRBY', key('meta'), 'seq', many), left = many } end)
  if orders.left == 0 then orders.upTo, orders.left = call('HINCRBY', key('meta'), 'seq', many), many end
  orders.left = orders.left - 1
  return orders.upTo - orders.left
end

-- Idempotent; the command is untouched.
lib.waiters_remove = function(kh, rpcId)
  local known = call('HGET', key('waiters', kh), rpcId)
  if not known then return end
  call('HDEL', key('waiters', kh), rpcId)
  lib.waiters_leave(kh, rpcId, lib.waiters_parse(known))
end

-- Takes a wait out of the indexes.
lib.waiters_leave = function(kh, rpcId, row)
  drop(key('waits'), row.place)
  drop(key('userwaits', row.uh), row.place)
  drop(key('clientwaits', row.ch), row.place)
  quit(key('nodewaits', row.callerNodeId), kh .. ':' .. rpcId)
end

-- The record and its result as a reply row has them; a large result is fetched by who reads the row.
lib.waiters_fields = function(rec, result)
  local inlineBytes = 16384
  local fields = { record = lib.commands_text(rec), kh = rec.kh }
  if result and #result > inlineBytes then fields.large = '1'
  elseif result then fields.result = result end
  return fields
end

-- Replies to each waiter that the record satisfies now, oldest first, and removes it. Called after the record was written; `result`: the
-- one that it has now, where it has one.
lib.waiters_reply = function(rec, result)
  local rows = hash(key('waiters', rec.kh))
  if not rows then return end
  local ready, all = {}, true
  for rpcId, value in pairs(rows) do
    local row = lib.waiters_parse(value)
    if lib.commands_satisfied(row.waitFor, rec) then
      row.rpcId = rpcId
      ready[#ready + 1] = row
    else all = false end
  end
  if #ready == 0 then return end
  table.sort(ready, function(a, b) return a.place < b.place end)
  local fields = lib.waiters_fields(rec, result)
  -- At once: an act of this call may look who waits.
  if all then call('UNLINK', key('waiters', rec.kh)) end
  for _, row in ipairs(ready) do
    fields.rpcId = row.rpcId
    if not all then call('HDEL', key('waiters', rec.kh), row.rpcId) end
    lib.waiters_leave(rec.kh, row.rpcId, row)
    lib.nodes_post(row.callerNodeId, 'reply', fields)
  end
end

-- A stretch of an index (`waits`, `userwaits`, `clientwaits`) after a place, at most `limit` rows that are at least `minAgeMs` old: their
-- places.
lib.waiters_stretch = function(index, after, limit, minAgeMs)
  local from, to = '-', '+'
  if after then from = '(' .. after end
  if minAgeMs then to = '(' .. string.format('%015d', math.max(0, now - minAgeMs + 1)) end
  return call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, limit)
end

-- Where the target's connection is (false: nowhere), where the wait is one that the filter asks for; nil where it is not.
lib.waiters_match = function(place, clientId, nodeId, callerNodeId)
  local kh, rpcId = string.match(place, '^%d+:%d+:([^:]+):(.*)$')
  local row = call('HGET', key('waiters', kh), rpcId)
  if not row then return nil end
  local rec = lib.commands_read(kh) or {}
  if clientId and rec.clientId ~= clientId then return nil end
  if nodeId and rec.nodeId ~= nodeId then return nil end
  if callerNodeId and lib.waiters_parse(row).callerNodeId ~= callerNodeId then return nil end
  return rec.nodeId or false
end

-- Waiters: callers that wait on a command. A row stands in the hash of its command, and by its place (when it came, then in which order)
-- in the indexes: so listings begin after a place, and no row moves.

-- Whether the record has come as far as is waited for.
lib.commands_satisfied = function(waitFor, rec)
  local ranks = { admitted = 0, queued = 1, dispatched = 2, acknowledged = 3, terminal = 4 }
  local stages = { admitted = 'admitted', acknowledged = 'acknowledged', completed = 'terminal' }
  return ranks[rec.stage] >= ranks[stages[waitFor]]
end

lib.waiters_count = function(kh)
  return call('HLEN', key('waiters', kh))
end

-- Registers a wait, once for each rpc id, and answers its row. `withinMs` nil: as long as the command may live.
lib.waiters_add = function(rec, rpcId, callerNode, waitFor, withinMs)
  local rows = key('waiters', rec.kh)
  local known = call('HGET', rows, rpcId)
  if known then return cjson.decode(known) end
  local timesOutAt = tonumber(rec.deadline)
  if withinMs then timesOutAt = math.min(now + withinMs, timesOutAt) end
  local order = call('HINCRBY', key('meta'), 'seq', 1)
  local row = {
    place = string.format('%015.0f:%012.0f:%s:%s', now, order, rec.kh, rpcId),
    uh = rec.uh,
    ch = rec.ch,
    callerNodeId = callerNode,
    waitFor = waitFor,
    createdAt = text(now),
    timesOutAt = text(timesOutAt),
  }
  call('HSET', rows, rpcId, cjson.encode(row))
  call('ZADD', key('waits'), 0, row.place)
  call('ZADD', key('userwaits', rec.uh), 0, row.place)
  call('ZADD', key('clientwaits', rec.ch), 0, row.place)
  call('SADD', key('nodewaits', callerNode), rec.kh .. ':' .. rpcId)
  return row
end

-- Idempotent; the command is untouched.
lib.waiters_remove = function(kh, rpcId)
  local known = call('HGET', key('waiters', kh), rpcId)
  if not known then return end
  local row = cjson.decode(known)
  call('HDEL', key('waiters', kh), rpcId)
  call('ZREM', key('waits'), row.place)
  call('ZREM', key('userwaits', row.uh), row.place)
  call('ZREM', key('clientwaits', row.ch), row.place)
  call('SREM', key('nodewaits', row.callerNodeId), kh .. ':' .. rpcId)
end

-- The record and its result as a reply row has them; a large result is fetched by who reads the row.
lib.waiters_fields = function(rec)
  local inlineBytes = 16384
  local fields = { record = cjson.encode(flat(rec)), kh = rec.kh }
  local result = key('result', rec.kh)
  local size = rec.stage == 'terminal' and call('STRLEN', result) or 0
  if size > inlineBytes then
    fields.large = '1'
  elseif size > 0 then
    fields.result = call('GET', result)
  end
  return fields
end

-- Replies to each waiter that the record satisfies now, oldest first, and removes it. Called after the record was written.
lib.waiters_reply = function(rec)
  local rows = hash(key('waiters', rec.kh))
  if not rows then return end
  local ready = {}
  for rpcId, value in pairs(rows) do
    local row = cjson.decode(value)
    if lib.commands_satisfied(row.waitFor, rec) then
      ready[#ready + 1] = { rpcId = rpcId, place = row.place, node = row.callerNodeId }
    end
  end
  if #ready == 0 then return end
  table.sort(ready, function(a, b) return a.place < b.place end)
  local fields = lib.waiters_fields(rec)
  for _, wait in ipairs(ready) do
    fields.rpcId = wait.rpcId
    lib.waiters_remove(rec.kh, wait.rpcId)
    lib.nodes_post(wait.node, 'reply', fields)
  end
end

-- A stretch of an index (`waits`, `userwaits`, `clientwaits`) after a place, at most `limit` rows that are at least `minAgeMs` old: their
-- places.
lib.waiters_stretch = function(index, after, limit, minAgeMs)
  local from, to = '-', '+'
  if after then from = '(' .. after end
  if minAgeMs then to = '(' .. string.format('%015.0f', math.max(0, now - minAgeMs + 1)) end
  return call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, limit)
end

-- Where the target's connection is (false: nowhere), where the wait is one that the filter asks for; nil where it is not.
lib.waiters_match = function(place, clientId, nodeId, callerNodeId)
  local kh, rpcId = string.match(place, '^%d+:%d+:([^:]+):(.*)$')
  local row = call('HGET', key('waiters', kh), rpcId)
  if not row then return nil end
  local command = call('HMGET', key('cmd', kh), 'clientId', 'nodeId')
  if clientId and command[1] ~= clientId then return nil end
  if nodeId and command[2] ~= nodeId then return nil end
  if callerNodeId and cjson.decode(row).callerNodeId ~= callerNodeId then return nil end
  return command[2]
end

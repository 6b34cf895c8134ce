-- Waiters: callers that wait on a command. The rows of a command stand as one text in its client's HASH (see lib-commands), and by place
-- (when it came, then in which order) in the indexes: so listings begin after a place, and no row moves.
-- needs: lib-commands, lib-ended, lib-nodes, lib-record

-- Whether the record has come as far as is waited for.
lib.commands_satisfied = function(waitFor, rec)
  local ranks = { admitted = 0, queued = 1, dispatched = 2, acknowledged = 3, terminal = 4 }
  local stages = { admitted = 'admitted', acknowledged = 'acknowledged', completed = 'terminal' }
  return ranks[rec.stage] >= ranks[stages[waitFor]]
end

-- A row as its text: each field with a NUL behind it.
lib.waiters_text = function(row)
  local nul = '\0'
  return row.rpcId .. nul .. row.callerNodeId .. nul .. row.waitFor .. nul .. row.createdAt .. nul .. row.timesOutAt .. nul .. row.place .. nul
end

-- The rows of a command's text, oldest first.
lib.waiters_parse = function(waits)
  local rows = {}
  local pattern = '(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z'
  for rpcId, callerNodeId, waitFor, createdAt, timesOutAt, place in string.gmatch(waits or '', pattern) do
    rows[#rows + 1] = {
      rpcId = rpcId, callerNodeId = callerNodeId, waitFor = waitFor, createdAt = createdAt, timesOutAt = timesOutAt, place = place,
    }
  end
  return rows
end

-- Keeps these rows of a command, and no other.
lib.waiters_keep = function(rec, rows)
  local texts = {}
  for i, row in ipairs(rows) do texts[i] = lib.waiters_text(row) end
  rec.waits = #texts > 0 and table.concat(texts)
  if not rec.span then set(key('client', rec.ch), 'w' .. rec.id, rec.waits) end
end

-- The row of an rpc id, or nil; how many rows there are.
lib.waiters_find = function(rec, rpcId)
  local rows, found = lib.waiters_parse(rec.waits), nil
  for _, row in ipairs(rows) do
    if row.rpcId == rpcId then found = row end
  end
  return found, #rows
end

-- Registers a wait, once for each rpc id, and answers its text. `withinMs` nil: as long as the command may live.
lib.waiters_add = function(rec, rpcId, callerNode, waitFor, withinMs)
  local known = lib.waiters_find(rec, rpcId)
  if known then return lib.waiters_text(known) end
  local timesOutAt = tonumber(rec.deadline)
  if withinMs then timesOutAt = math.min(now + withinMs, timesOutAt) end
  local row = {
    rpcId = rpcId,
    callerNodeId = callerNode,
    waitFor = waitFor,
    createdAt = text(now),
    timesOutAt = text(timesOutAt),
    place = string.format('%015d:%012d:', now, lib.waiters_order()) .. rec.name .. '\1' .. rpcId,
  }
  local whole = lib.waiters_text(row)
  rec.waits = (rec.waits or '') .. whole
  set(key('client', rec.ch), 'w' .. rec.id, rec.waits)
  put(key('waits'), '0', row.place)
  put(key('userwaits', rec.uh), '0', row.place)
  put(key('clientwaits', rec.ch), '0', row.place)
  join(key('nodewaits', callerNode), rec.name .. '\1' .. rpcId)
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
lib.waiters_remove = function(ch, id, rpcId)
  local rec = lib.commands_live(ch, id)
  if not rec then return end
  local left = {}
  for _, row in ipairs(lib.waiters_parse(rec.waits)) do
    if row.rpcId == rpcId then lib.waiters_leave(rec, row) else left[#left + 1] = row end
  end
  lib.waiters_keep(rec, left)
end

-- Takes a wait out of the indexes.
lib.waiters_leave = function(rec, row)
  drop(key('waits'), row.place)
  drop(key('userwaits', rec.uh), row.place)
  drop(key('clientwaits', rec.ch), row.place)
  quit(key('nodewaits', row.callerNodeId), rec.name .. '\1' .. row.rpcId)
end

-- The record and its result as a reply row has them; a large result is fetched by who reads the row.
lib.waiters_fields = function(rec, result)
  local inlineBytes = 16384
  local fields = { record = lib.commands_text(rec) }
  if result and #result > inlineBytes then
    fields.large, fields.field = lib.ended_key('results', rec.uh, rec.resultIn), rec.name
  elseif result then fields.result = result end
  return fields
end

-- Replies to each waiter that the record satisfies now, oldest first, and removes it. Called after the record was changed; `result`: the
-- one that it has now, where it has one.
lib.waiters_reply = function(rec, result)
  if not rec.waits then return end
  local fields, left = nil, {}
  for _, row in ipairs(lib.waiters_parse(rec.waits)) do
    if lib.commands_satisfied(row.waitFor, rec) then
      fields = fields or lib.waiters_fields(rec, result)
      fields.rpcId = row.rpcId
      lib.waiters_leave(rec, row)
      lib.nodes_post(row.callerNodeId, 'reply', fields)
    else left[#left + 1] = row end
  end
  if fields then lib.waiters_keep(rec, left) end
end

-- A stretch of an index (`waits`, `userwaits`, `clientwaits`) after a place, at most `limit` rows that are at least `minAgeMs` old: their
-- places.
lib.waiters_stretch = function(index, after, limit, minAgeMs)
  local from, to = '-', '+'
  if after then from = '(' .. after end
  if minAgeMs then to = '(' .. string.format('%015d', math.max(0, now - minAgeMs + 1)) end
  return call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, limit)
end

-- Client, command and rpc id of a place, or of a member of `nodewaits`.
lib.waiters_named = function(name)
  local ch, id, rpcId = string.match(name, '^(......................)(.*)\1(.*)$')
  return ch, id, rpcId
end

-- Where the target's connection is (false: nowhere), where the wait is one that the filter asks for; nil where it is not.
lib.waiters_match = function(place, clientId, nodeId, callerNodeId)
  local ch, id, rpcId = lib.waiters_named(string.match(place, '^%d+:%d+:(.*)$'))
  local rec = lib.commands_live(ch, id)
  local row = rec and lib.waiters_find(rec, rpcId)
  if not row then return nil end
  if clientId and rec.clientId ~= clientId then return nil end
  if nodeId and rec.nodeId ~= nodeId then return nil end
  if callerNodeId and row.callerNodeId ~= callerNodeId then return nil end
  return rec.nodeId or false
end

-- Waiters: callers that wait for a command. The waiters of a command are one text in its client's HASH (see
-- lib-commands). The indexes `waits` and `userwaits` have the place of each waiter: time, number, command. A place
-- never changes, so a page of a listing can begin after one.
-- needs: lib-commands, lib-ended, lib-nodes, lib-record

-- Whether a record has reached the stage that a waiter waits for.
lib.commands_satisfied = function(waitFor, rec)
  local ranks = { admitted = 0, queued = 1, dispatched = 2, acknowledged = 3, terminal = 4 }
  local stages = { admitted = 'admitted', acknowledged = 'acknowledged', completed = 'terminal' }
  return ranks[rec.stage] >= ranks[stages[waitFor]]
end

-- The text of a row: each field is followed by a NUL.
lib.waiters_text = function(row)
  local nul = '\0'
  return row.rpcId .. nul .. row.callerNodeId .. nul .. row.waitFor .. nul .. row.createdAt .. nul .. row.timesOutAt .. nul .. row.order .. nul
end

-- The rows of a command's text, oldest first.
lib.waiters_parse = function(waits)
  local rows = {}
  local pattern = '(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z'
  for rpcId, callerNodeId, waitFor, createdAt, timesOutAt, order in string.gmatch(waits or '', pattern) do
    rows[#rows + 1] = {
      rpcId = rpcId, callerNodeId = callerNodeId, waitFor = waitFor, createdAt = createdAt, timesOutAt = timesOutAt, order = order,
    }
  end
  return rows
end

-- Replaces the rows of a command.
lib.waiters_keep = function(rec, rows)
  local texts = {}
  for i, row in ipairs(rows) do texts[i] = lib.waiters_text(row) end
  rec.waits = #texts > 0 and table.concat(texts)
  if not rec.span then set(key('client', rec.ch), 'w' .. rec.id, rec.waits) end
end

-- The row of an rpc id, or nil. Then the number of rows.
lib.waiters_find = function(rec, rpcId)
  local rows, found = lib.waiters_parse(rec.waits), nil
  for _, row in ipairs(rows) do
    if row.rpcId == rpcId then found = row end
  end
  return found, #rows
end

-- The place of a row in the indexes. The name of the command begins at byte 27.
lib.waiters_place = function(rec, row)
  return string.format('%013d:%012d', tonumber(row.createdAt), tonumber(row.order)) .. rec.name
end

-- Registers a wait, once for each rpc id, and returns its text. `withinMs`: nil for as long as the command may live.
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
    order = text(lib.waiters_order()),
  }
  local whole = lib.waiters_text(row)
  rec.waits = (rec.waits or '') .. whole
  set(key('client', rec.ch), 'w' .. rec.id, rec.waits)
  local place = lib.waiters_place(rec, row)
  put(key('waits'), '0', place)
  put(key('userwaits', rec.uh), '0', place)
  return whole
end

-- The next number. A call of grouped acts takes 32 at a time, as many as its acts may need.
lib.waiters_order = function()
  local many = grouping and 32 or 1
  local orders = fact('orders', function() return { upTo = call('HINCRBY', key('meta'), 'seq', many), left = many } end)
  if orders.left == 0 then orders.upTo, orders.left = call('HINCRBY', key('meta'), 'seq', many), many end
  orders.left = orders.left - 1
  return (orders.upTo - orders.left) % 1e12
end

-- Removes a wait. Idempotent. The command does not change.
lib.waiters_remove = function(ch, id, rpcId)
  local rec = lib.commands_live(ch, id)
  if not rec then return end
  local left = {}
  for _, row in ipairs(lib.waiters_parse(rec.waits)) do
    if row.rpcId == rpcId then lib.waiters_leave(rec, row) else left[#left + 1] = row end
  end
  lib.waiters_keep(rec, left)
end

-- Removes a wait from the indexes.
lib.waiters_leave = function(rec, row)
  local place = lib.waiters_place(rec, row)
  drop(key('waits'), place)
  drop(key('userwaits', rec.uh), place)
end

-- The record and the result as fields of a reply row. For a large result that is stored, the row has its key and field,
-- and the reader fetches it.
lib.waiters_fields = function(rec, result)
  local inlineBytes = 16384
  local fields = { record = lib.commands_text(rec) }
  local stored = rec.resultIn ~= lib.ended_no_room
  if result and stored and #result > inlineBytes then
    fields.large, fields.field = lib.ended_results(rec, rec.resultIn), rec.name
  elseif result then fields.result = result end
  return fields
end

-- Replies to each waiter that the record satisfies now, oldest first, and removes it. Called after the record was
-- changed. `result`: the result of the command, or nil. `reported`: the calling node recorded this end, so it knows
-- record and result, and the row for a waiter of that node only names them. Returns how many such rows there are.
lib.waiters_reply = function(rec, result, reported)
  if not rec.waits then return 0 end
  local fields, left, named, replied = nil, {}, 0, false
  for _, row in ipairs(lib.waiters_parse(rec.waits)) do
    if lib.commands_satisfied(row.waitFor, rec) then
      replied = true
      lib.waiters_leave(rec, row)
      if reported and row.callerNodeId == ARGV[2] then
        lib.nodes_post(row.callerNodeId, 'reply', { rpcId = row.rpcId, own = rec.uh .. rec.name })
        named = named + 1
      else
        fields = fields or lib.waiters_fields(rec, result)
        fields.rpcId = row.rpcId
        lib.nodes_post(row.callerNodeId, 'reply', fields)
      end
    else left[#left + 1] = row end
  end
  if replied then lib.waiters_keep(rec, left) end
  return named
end

-- The next places of an index (`waits`, `userwaits`) after a place: at most `limit`, of waits that are at least
-- `minAgeMs` old.
lib.waiters_stretch = function(index, after, limit, minAgeMs)
  local from, to = '-', '+'
  if after then from = '(' .. after end
  if minAgeMs then to = '(' .. string.format('%013d', math.max(0, now - minAgeMs + 1)) end
  return call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, limit)
end

-- The command of a place and its row; nil if the wait is gone.
lib.waiters_at = function(place)
  local rec = lib.commands_live(string.sub(place, 27, 48), string.sub(place, 49))
  local order = text(tonumber(string.sub(place, 15, 26)))
  for _, row in ipairs(rec and lib.waiters_parse(rec.waits) or {}) do
    if row.order == order then return rec, row end
  end
  return nil
end

-- If a wait matches the filter: the node of its target's connection, or false if there is none. Else nil.
lib.waiters_match = function(place, clientId, nodeId, callerNodeId)
  local rec, row = lib.waiters_at(place)
  if not row then return nil end
  if clientId and rec.clientId ~= clientId then return nil end
  if nodeId and rec.nodeId ~= nodeId then return nil end
  if callerNodeId and row.callerNodeId ~= callerNodeId then return nil end
  return rec.nodeId or false
end

-- A client's link came up or went down: what waits for it is queued or parked, what it runs is sorted by instance.
-- a: 1 client's hash, 2 node, 3 instance, 4 epoch of the link, 5 'up' or 'down', 6 settings.
-- Returns {how many were queued anew, records that the instance runs, records that another one ran}.
-- class: settle
lib.commands_bind = function(a)
  local name, bound = key('binding', a[1]), hash(key('binding', a[1]))
  local epoch, told = bound and tonumber(bound.epoch), tonumber(a[4])
  if a[5] == 'up' and epoch and told < epoch then return false end
  if a[5] == 'down' and told ~= epoch then return false end
  if bound and (a[5] == 'down' or bound.nodeId ~= a[2]) then call('SREM', key('bound', bound.nodeId), a[1]) end
  if a[5] == 'down' then
    call('DEL', name)
    return true
  end
  call('HSET', name, 'nodeId', a[2], 'instanceId', a[3], 'epoch', text(told))
  call('SADD', key('bound', a[2]), a[1])
  return true
end

-- Queues a command on a link. True where it had been queued before and is so anew.
lib.commands_queue = function(rec, nodeId, instanceId)
  local named, before = rec.namedInstanceId, rec.queuedAt
  if named and named ~= instanceId then
    if before then lib.commands_end(rec, 'instance_replaced') end
    return false
  end
  local recovered = rec.recoveredFromNodeId
  if rec.queuedOn and rec.queuedOn ~= nodeId then recovered = rec.queuedOn end
  lib.commands_move(rec, {
    stage = 'queued',
    lastProvenStage = 'queued',
    expectedInstanceId = instanceId,
    nodeId = nodeId,
    queuedOn = nodeId,
    recoveredFromNodeId = recovered,
    queuedAt = before or text(now),
  })
  call('ZADD', key('due'), rec.deadline, rec.kh)
  lib.commands_post(rec, nodeId, 'command')
  return before ~= nil
end

-- The records of a client's list, in order; rows whose record is gone go too.
lib.commands_listed = function(kind, ch)
  local found = {}
  for _, kh in ipairs(call('ZRANGE', key(kind, ch), 0, -1)) do
    local rec = lib.commands_load(kh)
    if rec then found[#found + 1] = rec else call('ZREM', key(kind, ch), kh) end
  end
  return found
end

lib.commands_sort_running = function(ch, nodeId, instanceId)
  local unfinished, orphaned = {}, {}
  for _, rec in ipairs(lib.commands_listed('running', ch)) do
    if rec.boundInstanceId == instanceId then
      local recovered = rec.recoveredFromNodeId
      if rec.nodeId and rec.nodeId ~= nodeId then recovered = rec.nodeId end
      lib.commands_move(rec, { nodeId = nodeId, recoveredFromNodeId = recovered })
      unfinished[#unfinished + 1] = flat(rec)
    else orphaned[#orphaned + 1] = flat(rec) end
  end
  return unfinished, orphaned
end

acts['commands-rebind'] = function(a)
  lib.commands_use(a[6])
  if not lib.commands_bind(a) then return { 0, {}, {} } end
  if a[5] == 'down' then
    for _, kh in ipairs(call('ZRANGE', key('waiting', a[1]), 0, -1)) do lib.commands_park(kh) end
    return { 0, {}, {} }
  end
  local requeued = 0
  for _, rec in ipairs(lib.commands_listed('waiting', a[1])) do
    if lib.commands_queue(rec, a[2], a[3]) then requeued = requeued + 1 end
  end
  local unfinished, orphaned = lib.commands_sort_running(a[1], a[2], a[3])
  return { requeued, unfinished, orphaned }
end

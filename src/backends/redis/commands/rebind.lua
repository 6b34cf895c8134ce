-- A client's link came up, went down, or stood all along: what waits for it is queued or parked, what it runs is sorted by instance. A part at a time, in the
-- order admitted: as long as a link's part is not the last its binding holds `upTo`, the last place of what waited when it came up, and
-- `moved`, the last place that was queued. What is admitted meanwhile stands behind, queued but told to nobody: the parts tell it.
-- a: 1 client's hash, 2 node, 3 instance, 4 epoch of the link, 5 'up', 'down' or 'again', 6 settings, 7 '' or the place that the last part came to.
-- Returns {how many were queued anew, records that the instance runs, records that another one ran, the place that this part came to, or
-- false: it was the last}.
-- class: allow_oom
-- needs: lib-commands, lib-record
lib.commands_bind = function(a)
  local name, bound = key('binding', a[1]), hash(key('binding', a[1]))
  local epoch, told = bound and tonumber(bound.epoch), tonumber(a[4])
  if a[5] == 'up' and epoch and told < epoch then return false end
  if a[5] ~= 'up' and told ~= epoch then return false end
  if bound and (a[5] == 'down' or bound.nodeId ~= a[2]) then call('SREM', key('bound', bound.nodeId), a[1]) end
  if a[5] == 'down' then
    call('DEL', name)
    return true
  end
  local upTo = call('ZREVRANGE', key('waiting', a[1]), 0, 0, 'WITHSCORES')[2] or '0'
  call('HSET', name, 'nodeId', a[2], 'instanceId', a[3], 'epoch', text(told), 'upTo', upTo, 'moved', '0')
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
  return before and true or false
end

-- Commands that one part moves: Redis serves nobody else meanwhile.
lib.commands_part = 100

-- The next part of what waits for a client: {command's hash, its place} one after another.
lib.commands_next = function(ch, place)
  return call('ZRANGEBYSCORE', key('waiting', ch), '(' .. place, '+inf', 'WITHSCORES', 'LIMIT', 0, lib.commands_part)
end

-- A record of one of a client's lists; what names a record that is gone goes too.
lib.commands_listed = function(kind, ch, kh)
  local rec = lib.commands_load(kh)
  if not rec then call('ZREM', key(kind, ch), kh) end
  return rec
end

-- Queues a part of what waits on the link that came up. Answers how many had been queued before, and the place it came to, or false.
lib.commands_queue_part = function(a, binding)
  local part, upTo, requeued = lib.commands_next(a[1], binding.moved), tonumber(binding.upTo), 0
  for i = 1, #part, 2 do
    local rec = lib.commands_listed('waiting', a[1], part[i])
    if rec and tonumber(part[i + 1]) > upTo then lib.commands_post(rec, a[2], 'command')
    elseif rec and lib.commands_queue(rec, a[2], a[3]) then requeued = requeued + 1 end
  end
  if #part < 2 * lib.commands_part then
    call('HDEL', key('binding', a[1]), 'upTo', 'moved')
    return requeued, false
  end
  local place = text(tonumber(part[#part]))
  call('HSET', key('binding', a[1]), 'moved', place)
  return requeued, place
end

-- Parks a part of what waits, unless a link came up meanwhile. Answers the place it came to, or false.
lib.commands_park_part = function(ch, place)
  if call('EXISTS', key('binding', ch)) == 1 then return false end
  local part = lib.commands_next(ch, place)
  for i = 1, #part, 2 do lib.commands_park(part[i]) end
  return #part == 2 * lib.commands_part and text(tonumber(part[#part]))
end

lib.commands_sort_running = function(ch, nodeId, instanceId)
  local unfinished, orphaned = {}, {}
  for _, kh in ipairs(call('ZRANGE', key('running', ch), 0, -1)) do
    local rec = lib.commands_listed('running', ch, kh)
    if rec and rec.boundInstanceId == instanceId then
      local recovered = rec.recoveredFromNodeId
      if rec.nodeId and rec.nodeId ~= nodeId then recovered = rec.nodeId end
      lib.commands_move(rec, { nodeId = nodeId, recoveredFromNodeId = recovered })
      unfinished[#unfinished + 1] = lib.commands_text(rec)
    elseif rec then orphaned[#orphaned + 1] = lib.commands_text(rec) end
  end
  return unfinished, orphaned
end

acts['commands-rebind'] = function(a)
  lib.commands_use(a[6])
  local place = given(a[7])
  if not place and not lib.commands_bind(a) then return { 0, {}, {}, false } end
  if a[5] == 'down' then return { 0, {}, {}, lib.commands_park_part(a[1], place or '0') } end
  local binding = hash(key('binding', a[1]))
  -- A newer link came up, or this one is no more: what waits is not its own.
  if not binding or tonumber(binding.epoch) ~= tonumber(a[4]) or not binding.moved then return { 0, {}, {}, false } end
  local requeued, came = lib.commands_queue_part(a, binding)
  if came then return { requeued, {}, {}, came } end
  local unfinished, orphaned = lib.commands_sort_running(a[1], a[2], a[3])
  return { requeued, unfinished, orphaned, false }
end

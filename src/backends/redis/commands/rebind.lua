-- Moves a client's commands when its link comes up ('up'), goes down ('down') or stayed open ('again'): waiting
-- commands are queued or parked, and running ones are sorted by instance. One act moves one part of the queue, in the
-- order of admission. While a link comes up, its binding holds two places: `upTo` is the last place that was waiting
-- when the link came up, and `moved` the last place that was queued on the link. A command that is admitted between two
-- parts gets a later place, and a later part posts it to the node.
-- a: 1 client's hash, 2 node, 3 instance, 4 epoch of the link, 5 'up', 'down' or 'again', 6 settings, 7 '' or the last
--    place of the part before.
-- Returns {how many were queued again, records of the commands that the instance runs, records of those that an earlier
-- instance ran, the last place of this part, or false if it was the last part}.
-- class: allow_oom
-- needs: lib-commands, lib-due, lib-record
-- rows: all
lib.commands_bind = function(a)
  local bound = lib.commands_link(a[1])
  local boundEpoch, epoch = bound and tonumber(bound.epoch), tonumber(a[4])
  if a[5] == 'up' and boundEpoch and epoch < boundEpoch then return false end
  if a[5] ~= 'up' and epoch ~= boundEpoch then return false end
  if bound and (a[5] == 'down' or bound.nodeId ~= a[2]) then call('SREM', key('bound', bound.nodeId), a[1]) end
  if a[5] == 'down' then
    set(key('client', a[1]), 'b', false)
    return true
  end
  local upTo = get(key('client', a[1]), 'o') or '0'
  local row = call('HMGET', key('conn', a[1]), 'epoch', 'rev')
  local rev = tonumber(row[1] or 0) == epoch and row[2] or ''
  lib.commands_bind_to(a[1], { nodeId = a[2], instanceId = a[3], epoch = text(epoch), rev = rev, upTo = upTo, moved = '0' })
  call('SADD', key('bound', a[2]), a[1])
  return true
end

-- Queues a command on a link. Returns true if it had been queued before.
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
  if not before then lib.due_connected(rec) end
  lib.commands_offer(rec, nodeId)
  return before and true or false
end

-- The most commands that one part moves. Redis answers no other request while an act runs.
lib.commands_part = 100

-- Returns the next part of a client's waiting commands after a position, in order, and whether it is the last part.
lib.commands_next = function(ch, place)
  local part, after = {}, tonumber(place)
  for _, one in ipairs(lib.commands_of(ch, lib.commands_undispatched)) do
    if one.place > after then
      if #part == lib.commands_part then return part, false end
      part[#part + 1] = one
    end
  end
  return part, true
end

-- Queues a part of the waiting commands on the link that came up. Returns how many had been queued before, and the last
-- place of the part, or false if it was the last part.
lib.commands_queue_part = function(a, link)
  local part, last = lib.commands_next(a[1], link.moved)
  local upTo, requeued = tonumber(link.upTo), 0
  for _, one in ipairs(part) do
    local rec = lib.commands_live(a[1], one.id)
    if one.place > upTo then lib.commands_offer(rec, a[2])
    elseif lib.commands_queue(rec, a[2], a[3]) then requeued = requeued + 1 end
  end
  link.moved = not last and text(part[#part].place)
  if last then link.upTo = nil end
  lib.commands_bind_to(a[1], link)
  return requeued, link.moved
end

-- Parks a part of the waiting commands, unless a link came up since. Returns its last place, or false if it was the
-- last part.
lib.commands_park_part = function(ch, place)
  if lib.commands_link(ch) then return false end
  local part, last = lib.commands_next(ch, place)
  for _, one in ipairs(part) do lib.commands_park(lib.commands_live(ch, one.id)) end
  return not last and text(part[#part].place)
end

lib.commands_sort_running = function(ch, nodeId, instanceId)
  local unfinished, orphaned = {}, {}
  for _, one in ipairs(lib.commands_of(ch, lib.commands_running)) do
    local rec = lib.commands_live(ch, one.id)
    if rec.boundInstanceId == instanceId then
      local recovered = rec.recoveredFromNodeId
      if rec.nodeId and rec.nodeId ~= nodeId then recovered = rec.nodeId end
      lib.commands_move(rec, { nodeId = nodeId, recoveredFromNodeId = recovered })
      unfinished[#unfinished + 1] = lib.commands_text(rec)
    else orphaned[#orphaned + 1] = lib.commands_text(rec) end
  end
  return unfinished, orphaned
end

acts['commands-rebind'] = function(a)
  lib.commands_use(a[6])
  local place = given(a[7])
  if not place and not lib.commands_bind(a) then return { 0, {}, {}, false } end
  if a[5] == 'down' then return { 0, {}, {}, lib.commands_park_part(a[1], place or '0') } end
  local link = lib.commands_link(a[1])
  -- A newer link came up, or this link is gone: the waiting commands are no longer for this link.
  if not link or tonumber(link.epoch) ~= tonumber(a[4]) or not link.moved then return { 0, {}, {}, false } end
  local requeued, came = lib.commands_queue_part(a, link)
  if came then return { requeued, {}, {}, came } end
  local unfinished, orphaned = lib.commands_sort_running(a[1], a[2], a[3])
  return { requeued, unfinished, orphaned, false }
end

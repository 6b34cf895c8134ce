-- Binds a client to an instance and a node under a new epoch, and replaces the link that it had before.
-- a: 1 client hash, 2 user, 3 client, 4 instance, 5 node, 6 client type, 7 host ('1' or ''), 8 metadata or '', 9
-- actions, 10 their revision, 11 where and how long rows of its link history are kept (see lib-links)
-- Returns {epoch, now, replaced instance, replaced at, previous row as a flat list, predecessors}; absent values are
-- null. A repeated call binds again, under a higher epoch; the last epoch is valid.
-- class: grow
-- needs: lib-connections, lib-connections-ends, lib-links
acts['connections-connect'] = function(a)
  local ch = a[1]
  lib.connections_sweep(8)
  local previous = lib.connections_load(ch)
  local row = {
    userId = a[2], clientId = a[3], instanceId = a[4], nodeId = a[5], clientType = a[6], host = a[7],
    metadata = given(a[8]), actions = a[9], rev = a[10], links = a[11],
    connectedAt = text(now), lastSeenAt = text(now), renewedAt = text(now),
  }
  if previous and previous.instanceId == a[4] then
    row.replacedInstanceId = previous.replacedInstanceId
    row.replacedAt = previous.replacedAt
    row.predecessors = previous.predecessors
    row.reportsContexts = previous.reportsContexts
  elseif previous then
    row.replacedInstanceId = previous.instanceId
    row.replacedAt = text(now)
    row.predecessors = lib.connections_predecessors(previous)
    lib.connections_drop(a[2], a[3], ch)
  end
  local cause = previous and lib.connections_end_cause(previous)
  if previous and not call('HGET', key('conn', ch), 'disconnectedAt') then
    lib.links_ended(previous, cause, lib.connections_lost(previous.nodeId, previous.lastSeenAt) or now)
  end
  -- The epoch is at least the time, so that epochs grow even if the store has lost the last one.
  local epoch = math.max(tonumber(call('HGET', KEYS[1], 'epoch') or 0) + 1, now)
  row.epoch = text(epoch)
  call('HSET', KEYS[1], 'epoch', row.epoch)
  call('UNLINK', key('conn', ch))
  call('HSET', key('conn', ch), unpack(flat(row)))
  lib.links_opened(row, cause, previous and previous.instanceId)
  lib.connections_renewed(ch)
  call('ZADD', key('conns'), 0, a[2] .. '\0' .. a[3])
  call('ZADD', key('connusers'), 0, a[2])
  lib.connections_due(a[2], a[3], ch, now + lib.connections_dead + lib.connections_forget)
  local replaced = { row.replacedInstanceId or false, row.replacedAt or false }
  return { row.epoch, text(now), replaced[1], replaced[2], previous and flat(previous) or false, row.predecessors or false }
end

-- Replaces the actions that a client advertises, if its link is up under this epoch.
-- a: 1 client hash, 2 epoch, 3 actions, 4 their revision, 5 '1' if the calling process knows the rest of the row
-- Returns null if the link is not up; its last sign of life, if the calling process knows the rest; or the row as a
-- flat list.
-- class: grow
-- needs: lib-commands, lib-connections
acts['connections-advertise'] = function(a)
  if not lib.connections_up(a[1], a[2], {}) then return false end
  call('HSET', key('conn', a[1]), 'actions', a[3], 'rev', a[4])
  -- The binding has the revision, so an admission can compare it with the one that its caller has seen.
  local link = lib.commands_link(a[1])
  if link and link.epoch == a[2] then
    link.rev = a[4]
    lib.commands_bind_to(a[1], link)
  end
  if a[5] == '1' then return call('HGET', key('conn', a[1]), 'lastSeenAt') end
  return call('HGETALL', key('conn', a[1]))
end

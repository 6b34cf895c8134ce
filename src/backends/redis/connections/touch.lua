-- Records a sign of life of a link that is up under this epoch.
-- a: 1 client hash, 2 epoch, 3 revision of the actions that the calling process knows
-- Returns null if the link is not up; now, if the calling process knows the rest; or the row as a flat list.
-- class: allow_oom
-- needs: lib-connections
-- grouped: yes
acts['connections-touch'] = function(a)
  local ch = a[1]
  local row = lib.connections_up(ch, a[2], { 'rev', 'renewedAt' })
  if not row then return false end
  local name = key('conn', ch)
  call('HSET', name, 'lastSeenAt', text(now))
  lib.connections_due(row.userId, row.clientId, ch, now + lib.connections_dead + lib.connections_forget)
  if now - tonumber(row.renewedAt) >= lib.connections_renew then
    call('HSET', name, 'renewedAt', text(now))
    lib.connections_renewed(ch)
  end
  if row.rev == a[3] then return text(now) end
  return call('HGETALL', name)
end

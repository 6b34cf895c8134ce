-- Redeems a ticket. The first time it must not have expired; afterwards it can be redeemed again for as long as its
-- session is kept.
-- a: 1 ticket hash; 2 the most redeemed tickets of a session
-- Returns its row; false if there is none, or it has expired.
-- class: allow_oom
-- needs: lib-sites
acts['sites-redeem-ticket'] = function(a)
  local ticket = hash(key('ticket', a[1]))
  if not ticket then return false end
  local row = lib.sites_session(ticket.session)
  local redeemed = key('redeemed', ticket.session)
  call('ZREM', key('tickets', ticket.session), a[1])
  if not row or (not ticket.redeemed and tonumber(ticket['until']) <= now) then
    call('DEL', key('ticket', a[1]))
    return false
  end
  local ms = tonumber(row.forgetAt) - now + lib.sites_grace
  call('HSET', key('ticket', a[1]), 'redeemed', '1')
  call('PEXPIRE', key('ticket', a[1]), text(ms))
  -- The score is one more than the highest, so that the order is that of redemption.
  local last = call('ZREVRANGE', redeemed, 0, 0, 'WITHSCORES')
  call('ZADD', redeemed, text(tonumber(last[2] or '0') + 1), a[1])
  lib.sites_keep(redeemed, ms)
  for _, old in ipairs(call('ZRANGE', redeemed, 0, -tonumber(a[2]) - 1)) do
    call('DEL', key('ticket', old))
    call('ZREM', redeemed, old)
  end
  return flat(ticket)
end

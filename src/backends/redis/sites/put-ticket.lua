-- Stores a ticket of a session. If it is called again for the same ticket, it returns the existing one.
-- a: 1 ticket hash; 2 session hash; 3 session; 4 grant; 5 when its holder's own right ends (ms) or ''; 6 ttl (ms); 7
--    the most tickets of a session
-- Returns when it expires; 'gone' if the session has ended or does not exist; or 'full'.
-- class: grow
-- needs: lib-sites
acts['sites-put-ticket'] = function(a)
  local row = lib.sites_session(a[2])
  if not row or not lib.sites_open(row) then return 'gone' end
  local known = call('HGET', key('ticket', a[1]), 'until')
  if known then return known end
  local all = key('tickets', a[2])
  for _, old in ipairs(call('ZRANGEBYSCORE', all, '-inf', text(now))) do
    call('DEL', key('ticket', old))
    call('ZREM', all, old)
  end
  if call('ZCARD', all) >= tonumber(a[7]) then return 'full' end
  local ends, ms = text(now + tonumber(a[6])), tonumber(a[6]) + lib.sites_grace
  local ticket = { sessionId = a[3], session = a[2], grantId = a[4], holderExpiresAt = given(a[5]) }
  ticket['until'] = ends
  call('HSET', key('ticket', a[1]), unpack(flat(ticket)))
  call('PEXPIRE', key('ticket', a[1]), text(ms))
  call('ZADD', all, ends, a[1])
  lib.sites_keep(all, ms)
  return ends
end

-- Opens a session with its first grant. If it is called again for the same session, it returns the existing one.
-- a: 1 session hash; 2 session; 3 user; 4 site; 5 site hash; 6 ttl (ms); 7 how long a session that has ended is kept
--    (ms); 8 the most sessions of a site; the grant: 9 id; 10 parent or ''; 11 ttl (ms) or ''; 12 token hash; 13 what
--    it allows (JSON)
-- Returns the session's row; 'gone' if there is no such site; or 'full'.
-- class: grow
-- needs: lib-sites
acts['sites-open'] = function(a)
  local sh, site, kept, most = a[1], a[5], tonumber(a[7]), tonumber(a[8])
  local known = lib.sites_session(sh)
  if known then return flat(known) end
  if call('EXISTS', key('site', site)) == 0 then return 'gone' end
  lib.sites_sweep(site)
  local ends, over = key('sessionends', site), text(now + kept)
  local open = call('ZCOUNT', ends, '(' .. over, '+inf')
  if open >= most then return 'full' end
  -- Sessions that have ended never prevent a new one: the oldest of them are forgotten to make room.
  local excess = call('ZCARD', ends) - open - most + 1
  if excess > 0 then
    for _, member in ipairs(call('ZRANGEBYSCORE', ends, '-inf', over, 'LIMIT', 0, excess)) do lib.sites_drop(site, member) end
  end
  local expires = now + tonumber(a[6])
  local row = { sessionId = a[2], userId = a[3], siteId = a[4], site = site, given = '0' }
  row.openedAt, row.expiresAt, row.forgetAt = text(now), text(expires), text(expires + kept)
  call('HSET', key('session', sh), unpack(flat(row)))
  lib.sites_give(sh, row, { id = a[9], parentId = given(a[10]), ttlMs = given(a[11]), token = a[12], what = a[13] }, expires)
  local ms, member = expires + kept - now + lib.sites_grace, a[2] .. '\0' .. sh
  call('PEXPIRE', key('session', sh), text(ms))
  call('ZADD', key('sessions', site), 0, member)
  call('ZADD', ends, row.forgetAt, member)
  lib.sites_keep(key('sessions', site), ms)
  lib.sites_keep(ends, ms)
  return flat(row)
end

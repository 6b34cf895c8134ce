-- What the acts on sites share. A session is one HASH: userId, siteId, sessionId, site (the hash of its site), openedAt, expiresAt,
-- closedAt, forgetAt, given (grants so far); and of each grant `life:<grant>`, JSON of what acts read and change, and `what:<grant>`, JSON
-- that they only pass on. Members of `sessions` (by name) and `sessionends` (by forgetAt) are: session id, NUL, session hash.

-- How long a key outlives what it holds: time goes by the stamps alone.
lib.sites_grace = 3600000

-- The key lives at least so long from now, in milliseconds.
lib.sites_keep = function(name, ms)
  if call('PTTL', name) < ms then call('PEXPIRE', name, text(ms)) end
end

-- The grants of a session's row: grant -> its life.
lib.sites_lives = function(row)
  local lives = {}
  for field, value in pairs(row) do
    if string.sub(field, 1, 5) == 'life:' then lives[string.sub(field, 6)] = cjson.decode(value) end
  end
  return lives
end

lib.sites_live = function(life)
  return not life.revokedAt and tonumber(life.expiresAt) > now
end

lib.sites_open = function(row)
  return not row.closedAt and tonumber(row.expiresAt) > now
end

-- Forgets a session, with its tokens and tickets. The row may be gone by its TTL; what hung on it then goes by its own.
lib.sites_drop = function(site, member)
  local sh = string.sub(member, -22)
  local row = hash(key('session', sh))
  for _, life in pairs(row and lib.sites_lives(row) or {}) do call('DEL', key('token', life.token)) end
  for _, ticket in ipairs(call('ZRANGE', key('tickets', sh), 0, -1)) do call('DEL', key('ticket', ticket)) end
  for _, ticket in ipairs(call('ZRANGE', key('redeemed', sh), 0, -1)) do call('DEL', key('ticket', ticket)) end
  call('DEL', key('session', sh), key('tickets', sh), key('redeemed', sh))
  call('ZREM', key('sessions', site), member)
  call('ZREM', key('sessionends', site), member)
end

-- The row of a session; nil when there is none, or it is to be forgotten, which is then done.
lib.sites_session = function(sh)
  local row = hash(key('session', sh))
  if not row or tonumber(row.forgetAt) > now then return row end
  lib.sites_drop(row.site, row.sessionId .. '\0' .. sh)
  return nil
end

-- Forgets what is due of a site.
lib.sites_sweep = function(site)
  local due = call('ZRANGEBYSCORE', key('sessionends', site), '-inf', text(now), 'LIMIT', 0, 1000)
  for _, member in ipairs(due) do lib.sites_drop(site, member) end
end

-- Closes a session that was not closed before; `row` follows. One that had expired by itself is not kept the longer for being closed.
lib.sites_close = function(sh, row, kept)
  row.closedAt = text(now)
  row.forgetAt = text(math.min(now, tonumber(row.expiresAt)) + kept)
  call('HSET', key('session', sh), 'closedAt', row.closedAt, 'forgetAt', row.forgetAt)
  call('PEXPIRE', key('session', sh), text(tonumber(row.forgetAt) - now + lib.sites_grace))
  call('ZADD', key('sessionends', row.site), row.forgetAt, row.sessionId .. '\0' .. sh)
end

-- Gives a grant in a session; `row` follows. grant: id, parentId, ttlMs, token, what. It ends no later than `latest`.
lib.sites_give = function(sh, row, grant, latest)
  local ends = latest
  if grant.ttlMs then ends = math.min(latest, now + tonumber(grant.ttlMs)) end
  row.given = text(tonumber(row.given) + 1)
  local life = { order = row.given, parentId = grant.parentId, token = grant.token }
  life.grantedAt, life.expiresAt = text(now), text(ends)
  row['life:' .. grant.id], row['what:' .. grant.id] = cjson.encode(life), grant.what
  local name = key('session', sh)
  call('HSET', name, 'given', row.given, 'life:' .. grant.id, row['life:' .. grant.id], 'what:' .. grant.id, grant.what)
  local ms = tonumber(row.forgetAt) - now + lib.sites_grace
  call('SET', key('token', grant.token), sh .. ' ' .. grant.id, 'PX', text(ms))
end

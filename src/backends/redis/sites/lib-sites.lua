-- How sites are stored, and functions that their acts share. A session is one HASH with the fields userId, siteId,
-- sessionId, site (the hash of its site), openedAt, expiresAt, closedAt, forgetAt and given (the number of grants so
-- far). Each grant has two fields: `life:<grant>`, JSON that acts read and change, and `what:<grant>`, JSON of what it
-- allows, which they only return. Members of `sessions` (by name) and `sessionends` (by forgetAt) are: session id, NUL,
-- session hash.

-- How much longer a key lasts than the session or ticket in it, ms. The times in its row decide when the session or
-- ticket ends.
lib.sites_grace = 3600000

-- Makes a key last at least this long from now, ms.
lib.sites_keep = function(name, ms)
  if call('PTTL', name) < ms then call('PEXPIRE', name, text(ms)) end
end

-- Decodes the grants in a session's row. Returns a table: grant -> its life.
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

-- Forgets a session, with its tokens and tickets. If the session's key has expired, so that its tokens are not known,
-- the keys of the tokens expire by themselves.
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

-- Reads the row of a session; nil if there is none. Forgets a session that is due to be forgotten.
lib.sites_session = function(sh)
  local row = hash(key('session', sh))
  if not row or tonumber(row.forgetAt) > now then return row end
  lib.sites_drop(row.site, row.sessionId .. '\0' .. sh)
  return nil
end

-- Forgets the sessions of a site that are due to be forgotten.
lib.sites_sweep = function(site)
  local due = call('ZRANGEBYSCORE', key('sessionends', site), '-inf', text(now), 'LIMIT', 0, 1000)
  for _, member in ipairs(due) do lib.sites_drop(site, member) end
end

-- Closes a session that was not closed before, and updates `row`. If it had expired, it is not kept longer for being
-- closed.
lib.sites_close = function(sh, row, kept)
  row.closedAt = text(now)
  row.forgetAt = text(math.min(now, tonumber(row.expiresAt)) + kept)
  call('HSET', key('session', sh), 'closedAt', row.closedAt, 'forgetAt', row.forgetAt)
  call('PEXPIRE', key('session', sh), text(tonumber(row.forgetAt) - now + lib.sites_grace))
  call('ZADD', key('sessionends', row.site), row.forgetAt, row.sessionId .. '\0' .. sh)
end

-- Adds a grant to a session, and updates `row`. `grant`: id, parentId, ttlMs, token, what. It ends no later than
-- `latest`.
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

-- Sites, and the sessions, grants and tokens of their viewers.

-- library: lib-sites
-- Functions that the acts on sites share. A session is one HASH with the fields userId, siteId, sessionId, site (the
-- hash of its site), openedAt, expiresAt, closedAt, forgetAt and given (the number of grants so far). Each grant has
-- two fields: `life:<grant>`, JSON that acts read and change, and `what:<grant>`, JSON of its permissions, which acts
-- only return. Members of `sessions` (by name) and `sessionends` (by forgetAt) are: session id, NUL, session hash.

-- How much longer a key exists than the session or ticket in it, in ms. The times in the row decide when the session or
-- ticket ends.
lib.sites_grace = 3600000

-- Makes a key exist for at least `ms` milliseconds from now.
lib.sites_keep = function(name, ms)
  if call('PTTL', name) < ms then call('PEXPIRE', name, text(ms)) end
end

-- Decodes the grants in a session's row. Returns a table from grant id to `life`.
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

-- Forgets a session with its tokens and tickets. If the session's key has expired, its tokens are unknown; their keys
-- expire by themselves.
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

-- Forgets at most 1000 sessions of a site that are due to be forgotten.
lib.sites_sweep = function(site)
  local due = call('ZRANGEBYSCORE', key('sessionends', site), '-inf', text(now), 'LIMIT', 0, 1000)
  for _, member in ipairs(due) do lib.sites_drop(site, member) end
end

-- Closes a session that is not closed yet, and updates `row`. Closing an expired session does not extend its retention.
lib.sites_close = function(sh, row, kept)
  row.closedAt = text(now)
  row.forgetAt = text(math.min(now, tonumber(row.expiresAt)) + kept)
  call('HSET', key('session', sh), 'closedAt', row.closedAt, 'forgetAt', row.forgetAt)
  call('PEXPIRE', key('session', sh), text(tonumber(row.forgetAt) - now + lib.sites_grace))
  call('ZADD', key('sessionends', row.site), row.forgetAt, row.sessionId .. '\0' .. sh)
end

-- Adds a grant to a session, and updates `row`. `grant`: id, parentId, ttlMs, token, what. The grant ends at `latest`
-- or earlier.
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

-- act: add-grant
-- Adds a grant to a session. If it is called again for the same grant, it returns the existing one.
-- a: 1 session hash; 2 the most grants of a session; the grant: 3 id; 4 parent or ''; 5 ttl (ms) or ''; 6 token hash; 7
--    what it allows (JSON)
-- Returns {life, what it allows}; 'gone' if the session or the parent has ended or does not exist; or 'full'.
-- class: grow
-- needs: lib-sites
acts['sites-add-grant'] = function(a)
  local sh, id = a[1], a[3]
  local row = lib.sites_session(sh)
  if not row or not lib.sites_open(row) then return 'gone' end
  local lives = lib.sites_lives(row)
  if lives[id] then return { row['life:' .. id], row['what:' .. id] } end
  local parent, latest = given(a[4]), tonumber(row.expiresAt)
  if parent then
    if not lives[parent] or not lib.sites_live(lives[parent]) then return 'gone' end
    latest = tonumber(lives[parent].expiresAt)
  end
  local all, over = 0, {}
  for other, life in pairs(lives) do
    all = all + 1
    if not lib.sites_live(life) then over[other] = life end
  end
  -- Grants that have ended are removed only when room is needed. No live grant depends on them, because a grant never
  -- outlives its parent.
  if all >= tonumber(a[2]) then
    if not next(over) then return 'full' end
    for other, life in pairs(over) do
      call('HDEL', key('session', sh), 'life:' .. other, 'what:' .. other)
      call('DEL', key('token', life.token))
    end
  end
  lib.sites_give(sh, row, { id = id, parentId = parent, ttlMs = given(a[5]), token = a[6], what = a[7] }, latest)
  return { row['life:' .. id], row['what:' .. id] }
end

-- act: close
-- Closes a session. If it was closed before, the time of the first close stays.
-- a: 1 session hash; 2 how long a session that has ended is kept (ms)
-- Returns its row; false if there is none.
-- class: allow_oom
-- needs: lib-sites
acts['sites-close'] = function(a)
  local row = lib.sites_session(a[1])
  if not row then return false end
  if not row.closedAt then lib.sites_close(a[1], row, tonumber(a[2])) end
  return flat(row)
end

-- act: find-token
-- Finds the grant of a token.
-- a: 1 token hash
-- Returns {the grant's id, the row of its session}; false if there is no such grant.
-- class: allow_oom
-- needs: lib-sites
acts['sites-find-token'] = function(a)
  local found = call('GET', key('token', a[1]))
  if not found then return false end
  local id, row = string.sub(found, 24), lib.sites_session(string.sub(found, 1, 22))
  if not row or not row['life:' .. id] then return false end
  return { id, flat(row) }
end

-- act: list-sessions
-- Lists the sessions of a site by name.
-- a: 1 site hash; 2 lower bound for ZRANGEBYLEX; 3 the most sessions
-- Returns a list of texts: session NUL session hash.
-- class: allow_oom
-- needs: lib-sites
acts['sites-list-sessions'] = function(a)
  lib.sites_sweep(a[1])
  return call('ZRANGEBYLEX', key('sessions', a[1]), a[2], '+', 'LIMIT', 0, a[3])
end

-- act: open
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
  -- Ended sessions never prevent a new one: the oldest of them are forgotten to make room.
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

-- act: put-ticket
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

-- act: put
-- Creates a site or replaces its definition.
-- a: 1 site hash; 2 its member: user NUL site; 3, 4 bounds of the members of its user; 5 the most sites of a user; 6
--    definition (JSON)
-- Returns when it was first registered, or 'full'.
-- class: grow
acts['sites-put'] = function(a)
  local name = key('site', a[1])
  local since = call('HGET', name, 'registeredAt')
  if not since then
    if call('ZLEXCOUNT', key('sites'), a[3], a[4]) >= tonumber(a[5]) then return 'full' end
    since = text(now)
  end
  call('HSET', name, 'definition', a[6], 'registeredAt', since)
  call('ZADD', key('sites'), 0, a[2])
  return since
end

-- act: redeem-ticket
-- Redeems a ticket. The first time it must not have expired; afterwards it can be redeemed again for as long as its
-- session is kept.
-- a: 1 ticket hash; 2 the most redeemed tickets of a session
-- Returns its row; false if there is none, it has expired, or its session is gone.
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
  -- The score is one higher than the highest score, so that the order of scores is the order of redemption.
  local last = call('ZREVRANGE', redeemed, 0, 0, 'WITHSCORES')
  call('ZADD', redeemed, text(tonumber(last[2] or '0') + 1), a[1])
  lib.sites_keep(redeemed, ms)
  for _, old in ipairs(call('ZRANGE', redeemed, 0, -tonumber(a[2]) - 1)) do
    call('DEL', key('ticket', old))
    call('ZREM', redeemed, old)
  end
  return flat(ticket)
end

-- act: remove
-- Removes a site and closes its open sessions.
-- a: 1 site hash; 2 its member: user NUL site; 3 how long sessions that have ended are kept (ms)
-- Returns {definition, registeredAt, the ids of the closed sessions in no particular order...}; false if there is no
-- such site.
-- class: allow_oom
-- needs: lib-sites
-- rows: all
acts['sites-remove'] = function(a)
  local name, kept = key('site', a[1]), tonumber(a[3])
  local found = call('HMGET', name, 'definition', 'registeredAt')
  if not found[1] then return false end
  local reply = { found[1], found[2] }
  for _, member in ipairs(call('ZRANGEBYSCORE', key('sessionends', a[1]), '(' .. text(now + kept), '+inf')) do
    local sh = string.sub(member, -22)
    local row = lib.sites_session(sh)
    if row and lib.sites_open(row) then
      lib.sites_close(sh, row, kept)
      reply[#reply + 1] = row.sessionId
    end
  end
  call('DEL', name)
  call('ZREM', key('sites'), a[2])
  return reply
end

-- act: revoke-grant
-- Revokes a grant and all grants that descend from it.
-- a: 1 session hash; 2 grant
-- Returns the ids that it revoked, in the order in which they were granted; false if there is no such grant.
-- class: allow_oom
-- needs: lib-sites
acts['sites-revoke-grant'] = function(a)
  local row = lib.sites_session(a[1])
  local lives = row and lib.sites_lives(row) or {}
  if not lives[a[2]] then return false end
  local revoked = {}
  for id, life in pairs(lives) do
    local at = id
    while at and at ~= a[2] do at = lives[at] and lives[at].parentId end
    if at and not life.revokedAt then revoked[#revoked + 1] = id end
  end
  table.sort(revoked, function(one, other) return tonumber(lives[one].order) < tonumber(lives[other].order) end)
  for _, id in ipairs(revoked) do
    lives[id].revokedAt = text(now)
    call('HSET', key('session', a[1]), 'life:' .. id, cjson.encode(lives[id]))
  end
  return revoked
end

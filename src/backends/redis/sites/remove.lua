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

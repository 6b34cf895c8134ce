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

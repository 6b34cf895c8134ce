-- Revokes a grant and all that came from it.
-- a: 1 session hash; 2 grant
-- Returns the ids newly revoked, in the order given; false when there is no such grant.
-- class: allow_oom
-- needs: lib-sites
acts['sites-revoke-grant'] = function(a)
  local row = lib.sites_session(a[1])
  local lives = row and lib.sites_lives(row) or {}
  if not lives[a[2]] then return false end
  local meant = {}
  for id, life in pairs(lives) do
    local at = id
    while at and at ~= a[2] do at = lives[at] and lives[at].parentId end
    if at and not life.revokedAt then meant[#meant + 1] = id end
  end
  table.sort(meant, function(one, other) return tonumber(lives[one].order) < tonumber(lives[other].order) end)
  for _, id in ipairs(meant) do
    lives[id].revokedAt = text(now)
    call('HSET', key('session', a[1]), 'life:' .. id, cjson.encode(lives[id]))
  end
  return meant
end

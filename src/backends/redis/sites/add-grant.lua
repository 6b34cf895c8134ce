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
  -- Grants that have ended are removed when room is needed. A grant never outlives its parent, so no live grant depends
  -- on them.
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

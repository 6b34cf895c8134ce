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

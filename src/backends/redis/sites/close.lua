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

-- Reads sessions by their hashes. Forgets those that are due to be forgotten.
-- a: session hashes
-- Returns for each its row, or false.
-- class: allow_oom
-- needs: lib-sites
acts['sites-read-sessions'] = function(a)
  local rows = {}
  for i, sh in ipairs(a) do
    local row = lib.sites_session(sh)
    rows[i] = row and flat(row) or false
  end
  return rows
end

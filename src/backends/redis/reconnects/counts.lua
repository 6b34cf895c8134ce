-- Counts how often clients reconnected in the last hour. a: for each client its user and its id. Returns a number for
-- each.
-- class: allow_oom
-- needs: lib-reconnects
acts['reconnects-counts'] = function(a)
  local found = {}
  for i = 1, #a, 2 do found[#found + 1] = (lib.reconnects_count(a[i] .. '\0' .. a[i + 1])) end
  return found
end

-- Removes payloads that are past. a: 1 how many at most. Returns how many it were.
-- class: allow_oom
-- needs: lib-spill
acts['spill-clean'] = function(a)
  return lib.spill_sweep(tonumber(a[1]))
end

-- Removes payloads that have expired. a: 1 the most payloads. Returns how many it removed.
-- class: allow_oom
-- needs: lib-spill
acts['spill-clean'] = function(a)
  return lib.spill_sweep(tonumber(a[1]))
end

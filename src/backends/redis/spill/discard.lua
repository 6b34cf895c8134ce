-- Removes a payload that is not needed. a: 1 name; 2 bytes. Returns nothing.
-- class: allow_oom
-- needs: lib-spill
acts['spill-discard'] = function(a)
  lib.spill_remove(a[1], a[2])
end

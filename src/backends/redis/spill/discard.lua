-- Takes a payload back. a: 1 name; 2 bytes.
-- class: allow_oom
-- needs: lib-spill
acts['spill-discard'] = function(a)
  lib.spill_remove(a[1], a[2])
end

-- Whether a payload of so many bytes would be kept. a: 1 bytes; 2 bytes of all at most. Returns 1, or 0 where there may be no room.
-- class: grow
-- needs: lib-spill
acts['spill-fits'] = function(a)
  return lib.spill_fits(tonumber(a[1]), tonumber(a[2])) and 1 or 0
end

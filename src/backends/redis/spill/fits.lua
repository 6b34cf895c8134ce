-- Says whether a payload would be kept. a: 1 its bytes; 2 the most bytes of all payloads. Returns 1, or 0 if there may
-- be no room.
-- class: grow
-- needs: lib-spill
acts['spill-fits'] = function(a)
  return lib.spill_fits(tonumber(a[1]), tonumber(a[2])) and 1 or 0
end

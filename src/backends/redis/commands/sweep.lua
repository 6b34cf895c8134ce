-- Forgets spans of ended commands whose time is over. a: 1 at most how many. Returns 1 when there are more.
-- class: allow_oom
-- needs: lib-ended
acts['commands-sweep'] = function(a)
  return lib.ended_sweep(tonumber(a[1])) and 1 or 0
end

-- Removes spans whose time is over. a: 1 the most spans to remove. Returns 1 if there are more, else 0.
-- class: allow_oom
-- needs: lib-ended
acts['commands-sweep'] = function(a)
  return lib.ended_sweep(tonumber(a[1])) and 1 or 0
end

-- Forgets streams that are too old. a: 1 retention (ms); 2 the most streams. Returns 1 if there are more, else 0.
-- class: allow_oom
-- needs: lib-history
acts['history-sweep'] = function(a)
  return lib.history_sweep(tonumber(a[1]), tonumber(a[2])) and 1 or 0
end

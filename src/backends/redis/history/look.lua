-- Reads the last `seq` of a stream. a: 1 retention (ms); 2 user; 3 the user's hash; 4 hash of the stream. Returns {now,
-- 1 if there is such a stream or else 0, time of the newest row that was dropped early or false, seq of the last row}.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-look'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local head = lib.history_head(a[3], a[4])
  if head and head.at + tonumber(a[1]) > now then return { text(now), 1, head.evictedAt, text(head.seq) } end
  return { text(now), 0, call('ZSCORE', key('evicted'), a[2]), '0' }
end

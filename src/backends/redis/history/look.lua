-- How a stream stands. a: 1 retention (ms); 2 user; 3 hash of the stream. Returns {now, 1 or 0: there is such a stream, time of the newest
-- message that was dropped early or false}.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-look'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local info = call('HMGET', key('streaminfo', a[3]), 'live', 'at', 'evictedAt')
  local lives = info[1] and tonumber(info[2] or 0) + tonumber(a[1]) > now
  if lives then return { text(now), 1, info[3] } end
  return { text(now), 0, call('ZSCORE', key('evicted'), a[2]) }
end

-- Finds the newest messages of all streams except link histories, newest first. a: 1 retention (ms); 2 the most
-- messages; 3 '1': only those with a payload; 4 the most rows of a stream. Returns {now, time of the newest row that
-- was dropped early or false, 1 if there may be more messages or else 0, then for each message: user, suffix, hash of
-- the stream, `<at>-<seq>`}.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
-- rows: all
acts['history-newest'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local evicted = call('ZREVRANGE', key('evicted'), 0, 0, 'WITHSCORES')
  local found = { text(now), evicted[2] or false, 0 }
  local rows, budget = lib.history_backwards(tonumber(a[1]), tonumber(a[4])), 1000
  for row in rows do
    if budget == 0 or #found >= 3 + 4 * tonumber(a[2]) then
      found[3] = 1
      return found
    end
    budget = budget - 1
    if a[3] ~= '1' or row.payload then
      local userId, suffix, _, sth = string.match(row.member, '^(.*)%z(.*)%z(.*)%z(.*)$')
      for _, value in ipairs({ userId, suffix, sth, row.id }) do found[#found + 1] = value end
    end
  end
  return found
end

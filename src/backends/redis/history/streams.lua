-- Lists the streams of users. a: 1 retention (ms); 2 the most streams of each user; 3... in turn user, the user's hash,
-- and two bounds of the suffixes for ZRANGEBYLEX. Returns {now, then for each user {number of its streams, time of the
-- newest row that was dropped early or false, suffix...}}; or false if more streams are due to be forgotten than one
-- act forgets: call again.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-streams'] = function(a)
  if lib.history_sweep(tonumber(a[1]), lib.history_due) then return false end
  local found = { text(now) }
  for i = 3, #a, 4 do
    local name = key('streams', a[i + 1])
    local list = { call('ZCARD', name), call('ZSCORE', key('evicted'), a[i]) }
    for _, suffix in ipairs(call('ZRANGEBYLEX', name, a[i + 2], a[i + 3], 'LIMIT', 0, a[2])) do
      list[#list + 1] = suffix
    end
    found[#found + 1] = list
  end
  return found
end

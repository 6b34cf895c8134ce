-- Streams of users. a: 1 retention (ms); 2 how many of each user; 3... user, its hash, and the bounds of the suffixes (as ZRANGEBYLEX has
-- them), in turn. Returns {now, {streams in all, time of what was dropped or false, suffix...}...}; false where more is due to be forgotten
-- than one act takes: ask again.
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

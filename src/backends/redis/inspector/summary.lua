-- Counts of commands, and those that fall due soonest.
-- a: 1 at most how many of these.
-- Returns {now, commands with a record, commands that are due, then the names of the soonest, each followed by when}.
-- class: allow_oom
-- needs: lib-ended
acts['inspector-summary'] = function(a)
  lib.ended_sweep(32)
  local found = {
    text(now),
    text(call('ZCARD', key('due')) + lib.ended_count()),
    text(call('ZCOUNT', key('due'), '-inf', text(now))),
  }
  local soonest = call('ZRANGE', key('due'), 0, tonumber(a[1]) - 1, 'WITHSCORES')
  for i = 1, #soonest do found[#found + 1] = soonest[i] end
  return found
end

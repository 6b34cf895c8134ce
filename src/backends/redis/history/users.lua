-- Users with a stream. a: 1 retention (ms); 2 how many at most; 3 exclusive: the user to go on from, or ''. Returns {now, time of what was
-- dropped early of any user or false, user, how many streams...}; false where more is due to be forgotten than one act takes: ask again.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-users'] = function(a)
  if lib.history_sweep(tonumber(a[1]), lib.history_due) then return false end
  local evicted = call('ZREVRANGE', key('evicted'), 0, 0, 'WITHSCORES')
  local found = { text(now), evicted[2] or false }
  -- All members of one user begin with it and NUL.
  local from = a[3] == '' and '-' or '(' .. a[3] .. '\1'
  for _, member in ipairs(call('ZRANGEBYLEX', key('streamusers'), from, '+', 'LIMIT', 0, a[2])) do
    local userId, uh = string.match(member, '^(.*)%z(.*)$')
    found[#found + 1] = userId
    found[#found + 1] = call('ZCARD', key('streams', uh))
  end
  return found
end

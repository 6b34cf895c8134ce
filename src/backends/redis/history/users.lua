-- Lists the users that have a stream. a: 1 retention (ms); 2 the most users; 3 the user to continue after, or ''.
-- Returns {now, time of the newest row of any user that was dropped early or false, in turn each user and the number of
-- its streams}; or false if more streams are due to be forgotten than one act forgets: call again.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-users'] = function(a)
  if lib.history_sweep(tonumber(a[1]), lib.history_due) then return false end
  local evicted = call('ZREVRANGE', key('evicted'), 0, 0, 'WITHSCORES')
  local found = { text(now), evicted[2] or false }
  -- The members of a user begin with the user and a NUL.
  local from = a[3] == '' and '-' or '(' .. a[3] .. '\1'
  for _, member in ipairs(call('ZRANGEBYLEX', key('streamusers'), from, '+', 'LIMIT', 0, a[2])) do
    local userId, uh = string.match(member, '^(.*)%z(.*)$')
    found[#found + 1] = userId
    found[#found + 1] = call('ZCARD', key('streams', uh))
  end
  return found
end

-- Where messages of a command stand. a: 1 retention (ms); 2 user; 3 its hash; 4 command; 5 how many at most; 6 exclusive: the place to go on
-- from, or ''; 7 '1': newest first. Returns {now, time of what was dropped early or false, 1 or 0: the oldest were left out, place...}, a place being
-- `<time> NUL <suffix> NUL <seq>`.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-command'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local name = key('cmdrows', a[3] .. ':' .. redis.sha1hex(a[4]))
  local oldest = lib.history_pad(math.max(0, now - tonumber(a[1]) + 1))
  local from, to = '[' .. oldest, '+'
  if a[7] == '1' and a[6] ~= '' then to = '(' .. a[6]
  elseif a[6] >= oldest then from = '(' .. a[6] end
  local full = call('ZCARD', name) >= lib.history_command_rows
  local found = { text(now), call('ZSCORE', key('evicted'), a[2]), full and 1 or 0 }
  local places
  if a[7] == '1' then places = call('ZREVRANGEBYLEX', name, to, from, 'LIMIT', 0, a[5])
  else places = call('ZRANGEBYLEX', name, from, to, 'LIMIT', 0, a[5]) end
  for _, place in ipairs(places) do found[#found + 1] = place end
  return found
end

-- Lists the places of a command's rows. a: 1 retention (ms); 2 user; 3 the user's hash; 4 command; 5 the most places; 6
-- the place to continue after, or ''; 7 '1': newest first.
-- Returns {now, time of the newest row that was dropped early or false, 1 if the oldest places are missing or else 0,
-- place...}. A place is `<time> NUL <suffix> NUL <seq>`, both numbers with 16 digits. The places are not sorted, and
-- some may come before the place to continue after. The caller sorts and selects them (see history/places.ts).
-- class: allow_oom
-- needs: lib-history, lib-history-commands, lib-history-reads
acts['history-command'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local name = lib.history_more_key(a[3], a[4])
  local least = math.max(0, now - tonumber(a[1]) + 1)
  local oldest = lib.history_pad(least)
  local from, to = '[' .. oldest, '+'
  if a[7] == '1' and a[6] ~= '' then to = '(' .. a[6]
  elseif a[6] >= oldest then from = '(' .. a[6] end
  local found = { text(now), call('ZSCORE', key('evicted'), a[2]), call('ZCARD', name) >= lib.history_command_rows and 1 or 0 }
  local more
  if a[7] == '1' then more = call('ZREVRANGEBYLEX', name, to, from, 'LIMIT', 0, a[5])
  else more = call('ZRANGEBYLEX', name, from, to, 'LIMIT', 0, a[5]) end
  for _, places in ipairs({ lib.history_few_of(a[3], a[4], least), more }) do
    for _, place in ipairs(places) do found[#found + 1] = place end
  end
  return found
end

-- The counts that the summary of commands needs.

-- act: summary
-- Counts the commands that the reservations of scopes do not show. They are added up in Redis, because there is one
-- count for each second of the idempotency window.
-- Returns {now, ended commands with a record, commands past their connect deadline but not past their deadline}.
-- class: allow_oom
acts['inspector-summary'] = function()
  local counts, second, ended, due = call('HGETALL', key('endedcount')), math.floor(now / 1000), 0, 0
  for i = 1, #counts, 2 do
    if tonumber(counts[i]) > second then ended = ended + tonumber(counts[i + 1]) end
  end
  -- A name begins with the deadline of its command.
  for _, name in ipairs(call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now))) do
    if tonumber(string.sub(name, 1, 13)) > now then due = due + 1 end
  end
  return { text(now), text(ended), text(due) }
end

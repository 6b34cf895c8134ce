-- Commands past their connect deadline or deadline, oldest first. Changes nothing of them; what names a record that is gone goes.
-- a: how many at most.
-- Returns for each: {since when, user, client, command}.
-- class: settle
acts['nodes-due'] = function(a)
  local found = {}
  local due = call('ZRANGEBYSCORE', key('due'), '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, a[1])
  for i = 1, #due, 2 do
    local ids = call('HMGET', key('cmd', due[i]), 'userId', 'clientId', 'commandId')
    if ids[1] then found[#found + 1] = { text(tonumber(due[i + 1])), ids[1], ids[2], ids[3] }
    else call('ZREM', key('due'), due[i]) end
  end
  return found
end

-- Commands past their connect deadline or deadline, oldest first. Changes nothing of them.
-- a: how many at most.
-- Returns for each: {since when, user, client, command}.
-- class: allow_oom
-- needs: lib-commands
acts['nodes-due'] = function(a)
  local found = {}
  local due = call('ZRANGEBYSCORE', key('due'), '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, a[1])
  for i = 1, #due, 2 do
    local rec = lib.commands_live(string.sub(due[i], 1, 22), string.sub(due[i], 23))
    if rec then found[#found + 1] = { text(tonumber(due[i + 1])), rec.userId, rec.clientId, rec.commandId }
    else call('ZREM', key('due'), due[i]) end
  end
  return found
end

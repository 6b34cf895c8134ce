-- Lists the commands past their connect deadline or deadline, the longest due first. Does not change them.
-- a: the most commands.
-- Returns {1 if the same call would find more, else 0; then for each {since when it is due, user, client, command}}.
-- class: allow_oom
-- needs: lib-due
acts['nodes-due'] = function(a)
  local limit = tonumber(a[1])
  local found, more = lib.due_find(limit)
  local reply = { more and 1 or 0 }
  for i = 1, math.min(limit, #found) do
    local userId, clientId, commandId = string.match(found[i].name, '^(%Z*)%z(%Z*)%z(.*)$')
    reply[i + 1] = { text(found[i].since), userId, clientId, commandId }
  end
  return reply
end

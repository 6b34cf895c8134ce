-- Marks a command as dispatched, before its node writes it to the socket, if the calling node knows the record. The
-- node passes the next state, and the start of the state that it expects. If the state or the link differs in Redis,
-- nothing is written, and the node calls commands-dispatch.
-- a: 1 client's hash, 2 command, 3 the start of the link that the client must be bound to, 4 the start of its state, 5
--    and 6 its new state before and after the time, 7 deadline, 8 '' or its bytes in the share queued_bytes, 9 its
--    user's hash.
-- Returns the time; false if something differs or the deadline is over.
-- class: allow_oom
-- needs: lib-commands, lib-shares
-- grouped: yes
reads['commands-mark'] = function(a)
  want(key('client', a[1]), 'b', 'n', 's' .. a[2])
  if a[8] ~= '' then lib.shares_want('q', a[9]) end
end

acts['commands-mark'] = function(a)
  local client, state = key('client', a[1]), 's' .. a[2]
  if now >= tonumber(a[7]) then return false end
  if not lib.commands_starts(get(client, 'b'), a[3]) or not lib.commands_starts(get(client, state), a[4]) then return false end
  lib.commands_count(a[1], -1)
  if a[8] ~= '' then lib.shares_take('q', a[9], -tonumber(a[8])) end
  lib.commands_held().of[a[1] .. a[2]] = nil
  set(client, state, a[5] .. text(now) .. a[6])
  return text(now)
end

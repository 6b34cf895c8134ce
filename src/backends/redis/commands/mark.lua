-- The mark before a socket write, of a record that the asker knows: the asker says what the state will be, and it is compared with what the
-- state is. Anything else is left to commands-dispatch.
-- a: 1 client's hash, 2 command, 3 how the link begins that the client must be bound to, 4 how its state begins, 5 and 6 its new state before
--    and after the time, 7 deadline.
-- Returns the time; false: something is not as expected, and nothing was done.
-- class: allow_oom
-- needs: lib-commands
-- grouped: yes
reads['commands-mark'] = function(a)
  want(key('client', a[1]), 'b', 'n', 'o', 's' .. a[2])
end

acts['commands-mark'] = function(a)
  local client, state = key('client', a[1]), 's' .. a[2]
  local found = get(client, 'b', state)
  if now >= tonumber(a[7]) then return false end
  if not lib.commands_starts(found[1], a[3]) or not lib.commands_starts(found[2], a[4]) then return false end
  lib.commands_count(a[1], -1)
  lib.commands_held().of[a[1] .. a[2]] = nil
  set(client, state, a[5] .. text(now) .. a[6])
  return text(now)
end

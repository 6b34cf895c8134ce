-- Removes a wait that ended, or whose caller hung up. Can be repeated.
-- a: 1 client's hash, 2 command, 3 number of the wait, 4 node of the caller, 5 what it waits for.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-commands, lib-waiters
-- grouped: yes
reads['waiters-remove'] = function(a)
  lib.commands_want(a[1], a[2])
end

acts['waiters-remove'] = function(a)
  local rec = lib.commands_live(a[1], a[2])
  if rec and rec.waits then lib.waiters_remove(rec, { number = a[3], node = a[4], waitFor = a[5] }) end
end

-- Removes a wait that ended, or whose caller hung up. Can be repeated.
-- a: 1 client's hash, 2 command, 3 rpc id.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-commands, lib-waiters
-- grouped: yes
reads['waiters-remove'] = function(a)
  lib.commands_want(a[1], a[2])
end

acts['waiters-remove'] = function(a)
  lib.waiters_remove(a[1], a[2], a[3])
end

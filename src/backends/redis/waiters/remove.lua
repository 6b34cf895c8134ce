-- The caller's wait ended, or it hung up. Idempotent.
-- a: command hash; rpc id.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-waiters
-- grouped: yes
acts['waiters-remove'] = function(a)
  lib.waiters_remove(a[1], a[2])
end

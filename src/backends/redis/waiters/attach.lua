-- Registers a wait on a known command. Reading the record and registering are one act, so no end is missed in between.
-- a: 1 client's hash, 2 command, 3 user's hash; 4 rpc id, 5 node of the caller, 6 what it waits for, 7 within ms, or
--    ''; 8 how many may wait on one command; 9 how long results are shown, ms.
-- Returns {'unknown'}; {'full'}; {'satisfied', record, result or false, now}; {'waiting', record, the wait's row}.
-- class: grow
-- needs: lib-commands, lib-ended, lib-record, lib-waiters
-- grouped: yes
reads['waiters-attach'] = function(a)
  lib.commands_want(a[1], a[2], a[3])
end

acts['waiters-attach'] = function(a)
  local rpcId, waitFor = a[4], a[6]
  local rec = lib.commands_load(a[1], a[2], a[3])
  if not rec then return { 'unknown' } end
  if lib.commands_satisfied(waitFor, rec) then return { 'satisfied', lib.commands_text(rec), lib.commands_result(rec, a[9]), text(now) } end
  local known, count = lib.waiters_find(rec, rpcId)
  if not known and count >= tonumber(a[8]) then return { 'full' } end
  local whole = lib.waiters_add(rec, rpcId, a[5], waitFor, tonumber(given(a[7])))
  return { 'waiting', lib.commands_text(rec), whole }
end

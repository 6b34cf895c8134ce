-- Registers a wait on a known command. Reading the record and registering are one act, so no end is missed in between.
-- a: 1 client's hash, 2 command, 3 user's hash; 4 number of the wait, 5 node of the caller, 6 what it waits for;
--    7 how many may wait on one command; 8 how long results are shown, ms.
-- Returns {'unknown'}; {'full'}; {'satisfied', record, result or false, now}; {'waiting', record, now}.
-- class: grow
-- needs: lib-commands, lib-ended, lib-record, lib-waiters
-- grouped: yes
reads['waiters-attach'] = function(a)
  lib.commands_want(a[1], a[2], a[3])
end

acts['waiters-attach'] = function(a)
  local wait = { number = a[4], node = a[5], waitFor = a[6], most = tonumber(a[7]) }
  local rec = lib.commands_load(a[1], a[2], a[3])
  if not rec then return { 'unknown' } end
  if lib.commands_satisfied(wait.waitFor, rec) then
    return { 'satisfied', lib.commands_text(rec), lib.commands_result(rec, a[8]), text(now) }
  end
  local known, room = lib.waiters_find(rec, wait)
  if not room then return { 'full' } end
  if not known then lib.waiters_add(rec, wait) end
  return { 'waiting', lib.commands_text(rec), text(now) }
end

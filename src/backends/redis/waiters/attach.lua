-- Waits on a command that is known: the record is read and the wait registered in one, so that no end falls between.
-- a: command hash; rpc id; node of the caller; what it waits for; within ms, or ''; how many may wait on one command; how
-- long results are shown, ms.
-- Returns {'unknown'}; {'full'}; {'satisfied', record, result or false, now}; {'waiting', record, the wait's row}.
-- class: grow
-- needs: lib-commands, lib-record, lib-waiters
-- grouped: yes
acts['waiters-attach'] = function(a)
  local kh, rpcId, waitFor = a[1], a[2], a[4]
  local rec = lib.commands_load(kh)
  if not rec then return { 'unknown' } end
  if lib.commands_satisfied(waitFor, rec) then return { 'satisfied', lib.commands_text(rec), lib.commands_result(rec, a[7]), text(now) } end
  local known = call('HEXISTS', key('waiters', kh), rpcId) == 1
  if not known and lib.waiters_count(kh) >= tonumber(a[6]) then return { 'full' } end
  local whole = lib.waiters_add(rec, rpcId, a[3], waitFor, tonumber(given(a[5])))
  return { 'waiting', lib.commands_text(rec), whole }
end

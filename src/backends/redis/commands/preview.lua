-- Says what an admission would answer now. Writes nothing. It has the class of commands-admit, so a Redis without
-- memory refuses both.
-- a: 1 the most reservations of its scope, 2 the most undispatched commands of its client, 3 the most waiters of a
--    command; 4 time to connect (ms); 5 what it would wait for; 6 client's hash, 7 command, 8 user's hash, 9 scope's
--    hash; 10 digest, 11 instance; 12 settings; 13 '1' if the caller chose the id; 14 bytes of the params; 15 '1' if
--    they are small; 16 the most reservations of the user in a shared scope that is nearly full, or ''.
-- Returns {kind, record or code, now, instance that the client is bound to, reservations, undispatched, whether the id
-- is known, share or ''}.
-- class: grow
-- needs: lib-admission, lib-commands, lib-record, lib-shares
-- grouped: yes
reads['commands-preview'] = function(a)
  lib.commands_want(a[6], a[7], a[8])
  for _, share in ipairs({ 'q', 'm' }) do lib.shares_want(share, a[8]) end
end

acts['commands-preview'] = function(a)
  lib.commands_use(a[12])
  local rec = { ch = a[6], uh = a[8], sh = a[9], namedInstanceId = given(a[11]) }
  local wait = { number = '', node = '', waitFor = a[5], most = tonumber(a[3]), digest = a[10] }
  local terms = {
    scopeLimit = tonumber(a[1]), queueLimit = tonumber(a[2]), connectWithinMs = tonumber(a[4]),
    chosenId = a[13] == '1', memberLimit = tonumber(a[16]), params = { bytes = tonumber(a[14]), small = a[15] == '1' },
  }
  local binding = lib.commands_binding(rec.ch)
  local before = lib.commands_load(rec.ch, a[7], a[8])
  local kind, answer = 'admitted', false
  if before then kind, answer = 'attached', lib.commands_text(before) end
  local refusal, share
  if before then refusal = lib.admission_attach(before, wait)
  else refusal, share = lib.admission_refusal(rec, binding, terms) end
  if refusal then kind, answer = 'refused', refusal end
  local counts = { text(lib.admission_reserved(rec)), text(lib.admission_queued(rec)) }
  return { kind, answer, text(now), binding and binding.instanceId or false, counts[1], counts[2], before and 1 or 0, share or '' }
end

-- The end that a client reported, of a record that the asker knows: the asker says what the record will be, and the record and who waits for it
-- are compared with what they are. Anything else is left to commands-finish.
-- a: 1 client's hash, 2 command, 3 user's hash, 4 how its state begins, 5 who waits; its state at the end: 6 before the time it ends, 7 then
--    before the time it is forgotten, 8 then before the time of the sighting, 9 then before the span of the result, 10 the rest; 11 the
--    result; 12 to 19 of its history row: id, kind, payload, spill (JSON), bytes, error (JSON), instance, deadline; 20 hash of its mark,
--    21 the asker's word for it (see dedup_see), 22 settings; 23 to 29 what was asked for: user, client, scope's hash, scope, stream's hash,
--    trace, parent span.
-- Returns {time, span of the result or ''}; false: something is not as expected, and nothing was done.
-- class: allow_oom
-- needs: lib-commands, lib-dedup, lib-ended, lib-waiters
-- grouped: yes
reads['commands-end'] = function(a)
  want(key('client', a[1]), 's' .. a[2], 'a' .. a[2], 'w' .. a[2])
end

acts['commands-end'] = function(a)
  local found = get(key('client', a[1]), 's' .. a[2], 'a' .. a[2], 'w' .. a[2])
  if not lib.commands_starts(found[1], a[4]) or (found[3] or '') ~= a[5] then return false end
  lib.commands_use(a[22])
  local settings, time = lib.commands_settings, text(now)
  local rec = {
    ch = a[1], id = a[2], uh = a[3], name = a[1] .. a[2], asked = found[2], waits = found[3], stage = 'terminal', dispatchedAt = true,
    userId = a[23], clientId = a[24], commandId = a[2], sh = a[25], scopeId = a[26], sth = a[27],
    traceId = given(a[28]), parentSpanId = given(a[29]), forgetAt = text(now + settings.terminalMs),
  }
  lib.commands_held().of[rec.name] = nil
  lib.dedup_see(a[20], a[21])
  lib.commands_retain(rec, {
    id = a[12], kind = a[13], payload = given(a[14]), spill = given(a[15]), bytes = given(a[16]), error = given(a[17]), instanceId = a[18],
    live = now <= tonumber(a[19]) and 'yet' or nil,
  })
  local result = given(a[11])
  rec.resultIn = result and lib.ended_result(rec, result, settings) or ''
  lib.commands_leave(rec)
  lib.ended_add(rec, settings.terminalMs)
  rec.state = a[6] .. time .. a[7] .. rec.forgetAt .. a[8] .. time .. ',"lastSeenAt":' .. time .. a[9] .. rec.resultIn .. a[10]
  rec.whole = rec.state .. rec.asked
  set(lib.ended_key('ended', rec.uh, rec.span), rec.name, rec.whole)
  lib.waiters_reply(rec, result)
  return { time, rec.resultIn }
end

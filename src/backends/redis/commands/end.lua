-- Records the end that a client reported, if the calling node knows the record. The node passes the next record, and
-- also the waiters and the start of the state that it expects in Redis. If either differs, nothing is written, and the
-- node calls commands-finish.
-- a: 1 client's hash, 2 command, 3 user's hash, 4 how its state begins, 5 the waiters; its next state in parts: 6 up to
--    the time of the end, 7 up to the time at which it is forgotten, 8 up to the time of the sighting, 9 up to the span
--    of the result, 10 the rest; 11 the result; 12 to 18 of its history row: id, kind, payload, spill (JSON), bytes,
--    error (JSON), instance; 19 settings; 20 to 26 of the request: user, client, scope's hash, scope, stream's hash,
--    trace, parent span.
-- Returns {time, span of the result or ''}; false if something differs.
-- class: allow_oom
-- needs: lib-commands, lib-dedup, lib-ended, lib-history-commands, lib-shares, lib-spans, lib-waiters
-- grouped: yes
reads['commands-end'] = function(a)
  want(key('client', a[1]), 'n', 's' .. a[2], 'a' .. a[2], 'w' .. a[2])
  lib.commands_use(a[19])
  lib.history_want(a[3], a[24], a[2], lib.commands_settings.retentionMs)
  if a[11] == '' then return end
  lib.shares_want('r', a[3], (lib.ended_span_of_results(lib.commands_settings)))
end

acts['commands-end'] = function(a)
  local client = key('client', a[1])
  local waits = get(client, 'w' .. a[2])
  if not lib.commands_starts(get(client, 's' .. a[2]), a[4]) or (waits or '') ~= a[5] then return false end
  lib.commands_use(a[19])
  local settings, time = lib.commands_settings, text(now)
  local rec = {
    ch = a[1], id = a[2], uh = a[3], name = a[1] .. a[2], request = get(client, 'a' .. a[2]), waits = waits, stage = 'terminal',
    dispatchedAt = true, queuedAt = true, admittedAt = string.match(a[4], '^%Z*%z(%Z*)%z'),
    userId = a[20], clientId = a[21], commandId = a[2], sh = a[22], scopeId = a[23], sth = a[24],
    traceId = given(a[25]), parentSpanId = given(a[26]), forgetAt = text(now + settings.terminalMs),
    resultIn = false, queuedBytes = false, span = false, state = false, whole = false,
  }
  lib.commands_held().of[rec.name] = nil
  -- No deduplication mark is set: the record has the sighting, and commands-finish finds it there. A repetition of this
  -- act writes nothing.
  lib.dedup_count(true)
  lib.commands_retain(rec, {
    id = a[12], kind = a[13], payload = given(a[14]), spill = given(a[15]), bytes = given(a[16]), error = given(a[17]), instanceId = a[18],
  })
  local result = given(a[11])
  rec.resultIn = result and lib.ended_result(rec, result, settings) or ''
  lib.commands_leave(rec)
  lib.ended_add(rec, settings.terminalMs)
  rec.state = a[6] .. time .. a[7] .. rec.forgetAt .. a[8] .. time .. ',"lastSeenAt":' .. time .. a[9] .. rec.resultIn .. a[10]
  rec.whole = rec.state .. rec.request
  set(lib.spans_key(rec.uh, rec.span), rec.name, rec.whole)
  lib.waiters_reply(rec, result, true)
  return { time, rec.resultIn }
end

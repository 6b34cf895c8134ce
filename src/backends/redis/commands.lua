-- The acts on commands: how commands are admitted, dispatched, reported, ended, moved between links and read. What
-- these acts share is in commands-records.lua.

-- act: preview
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

-- act: admit
-- Admits a command, or attaches its caller to the command that has the id.
-- a: 1 the most reservations of its scope, 2 the most undispatched commands of its client, 3 the most waiters of a
--    command; 4 time to connect, 5 time to answer (ms); 6 params; of its history row: 7 payload, 8 spill (JSON), 9 the
--    spill's bytes; of the caller's wait: 10 number, 11 node, 12 what it waits for; 13 settings; 14 the request, as the
--    record has it; 15 client's hash, 16 command, 17 user's hash; of the request: 18 scope's hash, 19 stream's hash, 20
--    user, 21 client, 22 digest, 23 scope, 24 instance, 25 trace, 26 parent span; 27 '' or the start of the text of the
--    link that the client must be bound to; if the caller's node offers to dispatch the command at once: 28 epoch of
--    the link (else ''), 29 number of the attempt; 30 '1' if the caller chose the id; 31 bytes of the params; 32 '1' if
--    they are small; 33 the most reservations of the user in a shared scope that is nearly full, or ''.
-- Returns {'admitted', record, waiters, '1' if it is marked as dispatched}, {'attached', record, result, now},
-- {'refused', code, share or ''}, or {'outdated'} if the client is bound to another link or advertises other actions.
-- class: grow
-- needs: lib-admission, lib-commands, lib-due, lib-ended, lib-history-commands, lib-mark, lib-newest, lib-record, lib-shares, lib-spans, lib-waiters
-- grouped: yes
lib.commands_attach = function(rec, wait)
  local refusal, waits = lib.admission_attach(rec, wait)
  if refusal then return { 'refused', refusal, '' } end
  local result = lib.commands_result(rec, lib.commands_settings.retentionMs)
  if waits then lib.waiters_add(rec, wait) end
  return { 'attached', lib.commands_text(rec), result, text(now) }
end

lib.commands_begin = function(rec, binding, terms)
  local connectDeadline = now + terms.connectWithinMs
  rec.version, rec.attempts, rec.lateResults = '1', '0', '0'
  rec.stage = binding and 'queued' or 'admitted'
  rec.lastProvenStage, rec.execution = rec.stage, 'not_written'
  rec.admittedAt = text(now)
  rec.connectDeadline = text(connectDeadline)
  rec.deadline = text(connectDeadline + terms.respondWithinMs)
  rec.expectedInstanceId = rec.namedInstanceId
  if not binding then return end
  rec.expectedInstanceId = rec.namedInstanceId or binding.instanceId
  rec.nodeId, rec.queuedOn, rec.queuedAt = binding.nodeId, binding.nodeId, rec.admittedAt
end

-- Returns the next position in the client's queue. It is after all waiting commands, and after all commands that were
-- moved to a link that is still coming up.
lib.commands_place = function(rec, binding)
  local client = key('client', rec.ch)
  local last = tonumber(get(client, 'o') or 0) + 1
  if binding and binding.moved then last = math.max(last, tonumber(binding.moved) + 1, tonumber(binding.upTo) + 1) end
  set(client, 'o', text(last))
  return text(last)
end

lib.commands_add = function(rec, params, binding)
  rec.place = lib.commands_place(rec, binding)
  local client = key('client', rec.ch)
  lib.commands_held().of[rec.name] = rec
  if rec.queuedBytes then lib.shares_take('q', rec.uh, tonumber(rec.queuedBytes)) end
  lib.commands_write(rec)
  set(client, 'a' .. rec.id, rec.request)
  if params then set(client, 'p' .. rec.id, params) end
  lib.commands_count(rec.ch, 1)
  if lib.admission_reserved(rec) == 0 then put(key('scopes'), '0', rec.scopeId) end
  put(key('reserved', rec.sh), rec.deadline, lib.commands_name(rec))
  lib.commands_count_member(rec, 1)
  lib.due_add(rec)
  local window = lib.commands_settings.terminalMs
  local first, span = lib.spans_name(rec, window)
  lib.newest_add(rec, window, first)
  -- If the caller did not choose the id, room for a mark is taken only while there is some.
  if rec.chosenId or not lib.admission_no_mark(rec) then lib.shares_take('m', rec.uh, 1, span) end
end

reads['commands-admit'] = function(a)
  lib.commands_want(a[15], a[16], a[17])
  lib.commands_use(a[13])
  lib.history_want(a[17], a[19], a[16], lib.commands_settings.retentionMs)
  lib.shares_want('m', a[17], (lib.spans_of_names(lib.commands_settings.terminalMs)))
  if a[31] ~= '0' then lib.shares_want('q', a[17]) end
end

acts['commands-admit'] = function(a)
  lib.commands_use(a[13])
  -- The table has all fields from the start, because Lua copies a table that grows.
  local rec = {
    request = a[14], ch = a[15], id = a[16], commandId = a[16], name = a[15] .. a[16], uh = a[17], sh = a[18], sth = a[19], userId = a[20],
    clientId = a[21], digest = a[22], scopeId = a[23], namedInstanceId = given(a[24]), traceId = given(a[25]),
    parentSpanId = given(a[26]), waits = false, span = false, chosenId = a[30] == '1', rev = false, version = false,
    attempts = false, lateResults = false, stage = false, lastProvenStage = false, execution = false, admittedAt = false,
    connectDeadline = false, deadline = false, expectedInstanceId = false, nodeId = false, queuedOn = false,
    queuedAt = false, queuedBytes = false, place = false, boundInstanceId = false, dispatchedAt = false,
    markedBy = false, state = false, whole = false,
  }
  local wait = {
    number = a[10], node = a[11], waitFor = a[12], most = tonumber(a[3]), digest = rec.digest,
  }
  local binding = lib.commands_binding(rec.ch)
  local seen = given(a[27])
  if seen and not (binding and lib.commands_starts(get(key('client', rec.ch), 'b'), seen)) then return { 'outdated' } end
  local before = lib.commands_load(rec.ch, rec.id, rec.uh)
  if before then return lib.commands_attach(before, wait) end
  local terms = {
    scopeLimit = tonumber(a[1]), queueLimit = tonumber(a[2]), connectWithinMs = tonumber(a[4]), respondWithinMs = tonumber(a[5]),
    chosenId = rec.chosenId, memberLimit = tonumber(a[33]), params = { bytes = tonumber(a[31]), small = a[32] == '1' },
  }
  local refusal, share = lib.admission_refusal(rec, binding, terms)
  if refusal then return { 'refused', refusal, share or '' } end
  lib.commands_begin(rec, binding, terms)
  local marked = lib.commands_markable(rec, binding, wait.node, a[28])
  rec.queuedBytes = not marked and terms.params.bytes > 0 and text(terms.params.bytes)
  lib.commands_add(rec, given(a[6]), binding)
  lib.commands_retain(rec, {
    id = rec.commandId .. ':command', kind = 'command', payload = given(a[7]), spill = given(a[8]), bytes = given(a[9]),
    instanceId = rec.expectedInstanceId,
  })
  if not lib.commands_satisfied(wait.waitFor, rec) then
    lib.waiters_add(rec, wait)
  end
  -- While a link is coming up, the act that moves the next part of its queue posts the command, in the order of
  -- admission.
  if marked then lib.commands_mark(rec, { instance = binding.instanceId, attempt = a[28] .. ':' .. a[29] })
  elseif binding and not binding.moved then
    -- The calling node keeps the record that this act returns, so the row in its own mailbox only names the command.
    if binding.nodeId == wait.node then lib.commands_post(rec, binding.nodeId, 'command')
    else lib.commands_offer(rec, binding.nodeId, given(a[6])) end
  end
  return { 'admitted', lib.commands_text(rec), rec.waits or '', marked and '1' or '' }
end

-- act: dispatch
-- Marks a command as dispatched, before its node writes it to the socket. It is marked at most once, and only for the
-- link that the client is bound to. A node that got no answer repeats the attempt and gets the same answer. It cannot
-- have written the command, because it writes only after an answer.
-- a: 1 client's hash, 2 command, 3 node, 4 epoch of the link, 5 instance, 6 number of the attempt on this link, or ''.
-- Returns {'dispatch', record, params, ms left}, or {'skip'}.
-- class: allow_oom
-- needs: lib-commands, lib-mark, lib-record
-- grouped: yes
reads['commands-dispatch'] = function(a)
  lib.commands_want(a[1], a[2])
  want(key('client', a[1]), 'p' .. a[2])
end

acts['commands-dispatch'] = function(a)
  local rec = lib.commands_live(a[1], a[2])
  if not rec or now >= tonumber(rec.deadline) then return { 'skip' } end
  local attempt = a[6] ~= '' and a[4] .. ':' .. a[6] or nil
  local again = attempt and rec.markedBy == attempt and rec.stage == 'dispatched'
  if rec.stage ~= 'queued' and not again then return { 'skip' } end
  local link = lib.commands_link(a[1])
  if not link or link.nodeId ~= a[3] or tonumber(link.epoch) ~= tonumber(a[4]) then return { 'skip' } end
  if not again then lib.commands_mark(rec, { instance = a[5], attempt = attempt }) end
  local params = get(key('client', a[1]), 'p' .. a[2])
  return { 'dispatch', lib.commands_text(rec), params, text(tonumber(rec.deadline) - now) }
end

-- act: mark
-- Marks a command as dispatched, before its node writes it to the socket, if the calling node knows the record. The
-- node passes the next state, and the start of the state that it expects. If the state or the link differs in Redis,
-- nothing is written, and the node calls commands-dispatch.
-- a: 1 client's hash, 2 command, 3 the start of the link that the client must be bound to, 4 the start of its state, 5
--    and 6 its new state before and after the time, 7 deadline, 8 '' or its bytes in the share queued_bytes, 9 its
--    user's hash.
-- Returns the time; false if something differs or the deadline is over.
-- class: allow_oom
-- needs: lib-commands, lib-shares
-- grouped: yes
reads['commands-mark'] = function(a)
  want(key('client', a[1]), 'b', 'n', 's' .. a[2])
  if a[8] ~= '' then lib.shares_want('q', a[9]) end
end

acts['commands-mark'] = function(a)
  local client, state = key('client', a[1]), 's' .. a[2]
  if now >= tonumber(a[7]) then return false end
  if not lib.commands_starts(get(client, 'b'), a[3]) or not lib.commands_starts(get(client, state), a[4]) then return false end
  lib.commands_count(a[1], -1)
  if a[8] ~= '' then lib.shares_take('q', a[9], -tonumber(a[8])) end
  lib.commands_held().of[a[1] .. a[2]] = nil
  set(client, state, a[5] .. text(now) .. a[6])
  return text(now)
end

-- act: report
-- Records an acknowledgement or progress that the bound instance reported.
-- a: 1 client's hash, 2 instance, 3 'ack' or 'progress', 4 '1' to keep a history row, 5 its payload, 6 its spill
--    (JSON), 7 the spill's bytes, 8 least time between two rows (ms), 9 settings, 10 command, 11 user's hash.
-- Returns {'recorded', record}, or {'ignored', record}: the record is false if there is none.
-- class: allow_oom
-- needs: lib-commands, lib-record, lib-waiters
-- grouped: yes
lib.commands_progress = function(rec, a)
  if rec.progressRowAt and now - tonumber(rec.progressRowAt) < tonumber(a[8]) then return end
  local rows = text(tonumber(rec.progressRows or 0) + 1)
  lib.commands_note(rec, { progressRows = rows, progressRowAt = text(now) })
  local id = rec.commandId .. ':progress:' .. rows
  lib.commands_retain(rec, { id = id, kind = 'progress', payload = given(a[5]), spill = given(a[6]), bytes = given(a[7]) })
end

reads['commands-report'] = function(a)
  lib.commands_want(a[1], a[10])
end

acts['commands-report'] = function(a)
  lib.commands_use(a[9])
  local rec = lib.commands_load(a[1], a[10], a[11])
  if not rec then return { 'ignored', false } end
  if rec.stage == 'terminal' or rec.boundInstanceId ~= a[2] then return { 'ignored', lib.commands_text(rec) } end
  if rec.stage == 'dispatched' then
    lib.commands_move(rec, { stage = 'acknowledged', lastProvenStage = 'acknowledged', acknowledgedAt = text(now) })
    lib.waiters_reply(rec)
  elseif a[3] == 'ack' then return { 'ignored', lib.commands_text(rec) } end
  if a[3] == 'progress' and a[4] == '1' then lib.commands_progress(rec, a) end
  return { 'recorded', lib.commands_text(rec) }
end

-- act: finish
-- Records the end that a client reported, once and from the bound instance only. Any other report is counted, or kept
-- as evidence.
-- a: 1 client's hash, 2 instance, 3 'result', 'error' or 'cancelled', 4 payload; 5 payload for history, 6 its spill
--    (JSON), 7 the spill's bytes; 8 error (JSON), 9 '1' if the client refused; 10 id of the message, 11 hash of its
--    mark, 12 a random text that a repetition of this call passes again (see dedup_see); 13 digest of the end, 14 the
--    most sightings that are kept, 15 settings, 16 command, 17 user's hash.
-- Returns {'finished' | 'duplicate' | 'late' | 'fenced', record}, or {'unknown'}.
-- class: allow_oom
-- needs: lib-commands, lib-dedup, lib-record
-- grouped: yes
lib.commands_outcomes = { result = 'completed', error = 'failed', cancelled = 'cancelled' }
lib.commands_row_kinds = { result = 'result', error = 'error', cancelled = 'cancel' }

lib.commands_sightings = function(rec)
  return rec.sightings and cjson.decode(rec.sightings) or {}
end

-- Returns sightings as JSON, in the form that commands-end writes too. Ids need no escape.
lib.commands_sightings_text = function(sightings)
  local texts = {}
  for i, sighting in ipairs(sightings) do
    texts[i] = '{"messageId":"' .. sighting.messageId .. '","firstSeenAt":' .. text(sighting.firstSeenAt) ..
      ',"lastSeenAt":' .. text(sighting.lastSeenAt) .. ',"count":' .. text(sighting.count) .. '}'
  end
  return '[' .. table.concat(texts, ',') .. ']'
end

lib.commands_see = function(sightings, messageId, most)
  if #sightings < most then
    sightings[#sightings + 1] = { messageId = messageId, firstSeenAt = now, lastSeenAt = now, count = 1 }
  end
  return lib.commands_sightings_text(sightings)
end

-- Keeps an end that came too late, or from another instance, as evidence. The record describes the first such end.
-- History gets a row for each such end, until the record has the most sightings.
lib.commands_late = function(rec, sightings, a)
  if #sightings < tonumber(a[14]) then
    lib.commands_retain(rec, {
      id = a[10] .. ':late', kind = 'late_result', instanceId = a[2],
      payload = given(a[5]), spill = given(a[6]), bytes = given(a[7]), error = given(a[8]),
    })
  end
  local late = { at = now, instanceId = a[2], kind = a[3], digest = a[13] }
  lib.commands_move(rec, {
    lateResults = text(tonumber(rec.lateResults) + 1),
    firstLate = rec.firstLate or cjson.encode(late),
    sightings = lib.commands_see(sightings, a[10], tonumber(a[14])),
  })
end

lib.commands_reported = function(rec, sightings, a)
  lib.commands_retain(rec, {
    id = a[10], kind = lib.commands_row_kinds[a[3]],
    payload = given(a[5]), spill = given(a[6]), bytes = given(a[7]), error = given(a[8]),
  })
  local problem = given(a[8])
  lib.commands_conclude(rec, {
    outcome = lib.commands_outcomes[a[3]],
    execution = a[9] == '1' and 'refused_by_client' or 'reported_by_client',
    error = problem,
    -- The reason of a request to cancel is removed, because the client has reported how the command ended.
    reason = problem and cjson.decode(problem).code or false,
    sightings = lib.commands_see(sightings, a[10], tonumber(a[14])),
  }, given(a[4]), true)
end

reads['commands-finish'] = function(a)
  lib.commands_want(a[1], a[16])
end

acts['commands-finish'] = function(a)
  lib.commands_use(a[15])
  local rec = lib.commands_load(a[1], a[16], a[17])
  if not rec then return { 'unknown' } end
  local sightings = lib.commands_sightings(rec)
  for _, sighting in ipairs(sightings) do
    if sighting.messageId == a[10] then
      lib.dedup_again(a[11], a[12], sighting.firstSeenAt)
      sighting.lastSeenAt, sighting.count = now, sighting.count + 1
      lib.commands_move(rec, { sightings = lib.commands_sightings_text(sightings) })
      return { 'duplicate', lib.commands_text(rec) }
    end
  end
  lib.dedup_see(a[11], a[12])
  if rec.stage == 'terminal' or rec.boundInstanceId ~= a[2] then
    lib.commands_late(rec, sightings, a)
    return { rec.stage == 'terminal' and 'late' or 'fenced', lib.commands_text(rec) }
  end
  lib.commands_reported(rec, sightings, a)
  return { 'finished', lib.commands_text(rec) }
end

-- act: end
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

-- act: settle
-- Ends commands without a report of their client, and records requests to cancel.
-- a: 1 client's hash, 2 command, 3 user's hash; 4 'cancel', 'expire' or 'give_up'; 5 settings;
--    of cancel: 6 who requested it, 7 '1' if there is a reason, 8 the reason; of give_up: 6 code, 7 instance that it
--    must be bound to or, before its dispatch, wait for; '' for any.
-- Returns {'settled' | 'requested' | 'unchanged', record}, or {'unknown'}.
-- class: allow_oom
-- needs: lib-commands, lib-record
lib.commands_due_code = function(rec)
  local late = now >= tonumber(rec.deadline)
  if rec.dispatchedAt then return late and 'response_timeout' or nil end
  if not rec.queuedAt then return now >= tonumber(rec.connectDeadline) and 'connect_timeout' or nil end
  return late and 'queue_timeout' or nil
end

lib.commands_give_up_code = function(rec, code, instance)
  if not instance or instance == (rec.boundInstanceId or rec.expectedInstanceId) then return code end
  return nil
end

lib.commands_cancel = function(rec, by, reason)
  local first = not rec.cancelRequestedAt
  if first then
    local problem = reason and cjson.encode({ code = 'cancelled', message = reason })
    lib.commands_retain(rec, { id = rec.commandId .. ':cancel', kind = 'cancel', error = problem })
  end
  local at = rec.cancelRequestedAt or text(now)
  if not rec.dispatchedAt then
    lib.commands_conclude(rec, {
      outcome = 'cancelled', execution = 'not_written', reason = 'cancelled by ' .. by, cancelRequestedAt = at,
    })
    return { 'settled', lib.commands_text(rec) }
  end
  if first then lib.commands_move(rec, { cancelRequestedAt = at, reason = 'cancel requested by ' .. by }) end
  if rec.nodeId then lib.commands_post(rec, rec.nodeId, 'cancel', reason) end
  return { 'requested', lib.commands_text(rec) }
end

acts['commands-settle'] = function(a)
  lib.commands_use(a[5])
  local rec = lib.commands_load(a[1], a[2], a[3])
  if not rec then return { 'unknown' } end
  if rec.stage == 'terminal' then return { 'unchanged', lib.commands_text(rec) } end
  if a[4] == 'cancel' then return lib.commands_cancel(rec, a[6], a[7] == '1' and a[8] or nil) end
  local code
  if a[4] == 'expire' then code = lib.commands_due_code(rec) else code = lib.commands_give_up_code(rec, a[6], given(a[7])) end
  if not code then return { 'unchanged', lib.commands_text(rec) } end
  lib.commands_end(rec, code)
  return { 'settled', lib.commands_text(rec) }
end

-- act: rebind
-- Moves a client's commands when its link comes up ('up'), goes down ('down') or stayed open ('again'): waiting
-- commands are queued or parked, and running ones are sorted by instance. One act moves one part of the queue, in the
-- order of admission. While a link comes up, its binding holds two places: `upTo` is the last place that was waiting
-- when the link came up, and `moved` the last place that was queued on the link. A command that is admitted between two
-- parts gets a later place, and a later part posts it to the node.
-- a: 1 client's hash, 2 node, 3 instance, 4 epoch of the link, 5 'up', 'down' or 'again', 6 settings, 7 '' or the last
--    place of the part before.
-- Returns {how many were queued again, records of the commands that the instance runs, records of those that an earlier
-- instance ran, the last place of this part, or false if it was the last part}.
-- class: allow_oom
-- needs: lib-commands, lib-due, lib-record
-- rows: all
lib.commands_bind = function(a)
  local bound = lib.commands_link(a[1])
  local boundEpoch, epoch = bound and tonumber(bound.epoch), tonumber(a[4])
  if a[5] == 'up' and boundEpoch and epoch < boundEpoch then return false end
  if a[5] ~= 'up' and epoch ~= boundEpoch then return false end
  if bound and (a[5] == 'down' or bound.nodeId ~= a[2]) then call('SREM', key('bound', bound.nodeId), a[1]) end
  if a[5] == 'down' then
    set(key('client', a[1]), 'b', false)
    return true
  end
  local upTo = get(key('client', a[1]), 'o') or '0'
  local row = call('HMGET', key('conn', a[1]), 'epoch', 'rev')
  local rev = tonumber(row[1] or 0) == epoch and row[2] or ''
  lib.commands_bind_to(a[1], { nodeId = a[2], instanceId = a[3], epoch = text(epoch), rev = rev, upTo = upTo, moved = '0' })
  call('SADD', key('bound', a[2]), a[1])
  return true
end

-- Queues a command on a link. Returns true if it had been queued before.
lib.commands_queue = function(rec, nodeId, instanceId)
  local named, before = rec.namedInstanceId, rec.queuedAt
  if named and named ~= instanceId then
    if before then lib.commands_end(rec, 'instance_replaced') end
    return false
  end
  local recovered = rec.recoveredFromNodeId
  if rec.queuedOn and rec.queuedOn ~= nodeId then recovered = rec.queuedOn end
  lib.commands_move(rec, {
    stage = 'queued',
    lastProvenStage = 'queued',
    expectedInstanceId = instanceId,
    nodeId = nodeId,
    queuedOn = nodeId,
    recoveredFromNodeId = recovered,
    queuedAt = before or text(now),
  })
  if not before then lib.due_connected(rec) end
  lib.commands_offer(rec, nodeId)
  return before and true or false
end

-- The most commands that one part moves. Redis answers no other request while an act runs.
lib.commands_part = 100

-- Returns the next part of a client's waiting commands after a position, in order, and whether it is the last part.
lib.commands_next = function(ch, place)
  local part, after = {}, tonumber(place)
  for _, one in ipairs(lib.commands_of(ch, lib.commands_undispatched)) do
    if one.place > after then
      if #part == lib.commands_part then return part, false end
      part[#part + 1] = one
    end
  end
  return part, true
end

-- Queues a part of the waiting commands on the link that came up. Returns how many had been queued before, and the last
-- place of the part, or false if it was the last part.
lib.commands_queue_part = function(a, link)
  local part, last = lib.commands_next(a[1], link.moved)
  local upTo, requeued = tonumber(link.upTo), 0
  for _, one in ipairs(part) do
    local rec = lib.commands_live(a[1], one.id)
    if one.place > upTo then lib.commands_offer(rec, a[2])
    elseif lib.commands_queue(rec, a[2], a[3]) then requeued = requeued + 1 end
  end
  link.moved = not last and text(part[#part].place)
  if last then link.upTo = nil end
  lib.commands_bind_to(a[1], link)
  return requeued, link.moved
end

-- Parks a part of the waiting commands, unless a link came up since. Returns its last place, or false if it was the
-- last part.
lib.commands_park_part = function(ch, place)
  if lib.commands_link(ch) then return false end
  local part, last = lib.commands_next(ch, place)
  for _, one in ipairs(part) do lib.commands_park(lib.commands_live(ch, one.id)) end
  return not last and text(part[#part].place)
end

lib.commands_sort_running = function(ch, nodeId, instanceId)
  local unfinished, orphaned = {}, {}
  for _, one in ipairs(lib.commands_of(ch, lib.commands_running)) do
    local rec = lib.commands_live(ch, one.id)
    if rec.boundInstanceId == instanceId then
      local recovered = rec.recoveredFromNodeId
      if rec.nodeId and rec.nodeId ~= nodeId then recovered = rec.nodeId end
      lib.commands_move(rec, { nodeId = nodeId, recoveredFromNodeId = recovered })
      unfinished[#unfinished + 1] = lib.commands_text(rec)
    else orphaned[#orphaned + 1] = lib.commands_text(rec) end
  end
  return unfinished, orphaned
end

acts['commands-rebind'] = function(a)
  lib.commands_use(a[6])
  local place = given(a[7])
  if not place and not lib.commands_bind(a) then return { 0, {}, {}, false } end
  if a[5] == 'down' then return { 0, {}, {}, lib.commands_park_part(a[1], place or '0') } end
  local link = lib.commands_link(a[1])
  -- A newer link came up, or this link is gone: the waiting commands are no longer for this link.
  if not link or tonumber(link.epoch) ~= tonumber(a[4]) or not link.moved then return { 0, {}, {}, false } end
  local requeued, came = lib.commands_queue_part(a, link)
  if came then return { requeued, {}, {}, came } end
  local unfinished, orphaned = lib.commands_sort_running(a[1], a[2], a[3])
  return { requeued, unfinished, orphaned, false }
end

-- act: get
-- Reads the records of commands. a: for each command its client's hash, its id and its user's hash. Returns {now, then
-- for each the record, or false if there is none}.
-- class: allow_oom
-- needs: lib-commands, lib-record
-- grouped: yes
-- rows: 3
reads['commands-get'] = function(a)
  for i = 1, #a, 3 do lib.commands_want(a[i], a[i + 1], a[i + 2]) end
end

acts['commands-get'] = function(a)
  local found = { text(now) }
  for i = 1, #a, 3 do
    local rec = lib.commands_load(a[i], a[i + 1], a[i + 2])
    found[#found + 1] = rec and lib.commands_text(rec) or false
  end
  return found
end

-- act: read
-- Reads the records of commands as they are stored. Parses none of them, so a record costs a tenth of what it costs in
-- commands-get.
-- a: 1 the stage that a record must have, '' for any; 2 how many texts it must contain, and then these texts; then for
--    each command its client's hash, its id and its user's hash.
-- Returns {now, then for each command its record; false if there is none, it has another stage, or lacks a text}.
-- class: allow_oom
-- needs: lib-spans
-- rows: 12

-- Captures when an ended command is forgotten: the 26th field of a record (see commands/record.ts).
lib.commands_forget_pattern = '^' .. string.rep('%Z*%z', 25) .. '(%d*)%z'

-- Collects the commands by a key: `groups` has for each key a list of places in the arguments.
lib.commands_group = function(groups, name, place)
  local group = groups[name]
  if not group then
    group = {}
    groups[name] = group
  end
  group[#group + 1] = place
end

-- Reads the live commands of one client into `found`, by place. Adds the others to `ended`, by user.
lib.commands_read_live = function(a, ch, places, found, ended)
  local fields = {}
  for _, place in ipairs(places) do
    fields[#fields + 1] = 's' .. a[place + 1]
    fields[#fields + 1] = 'a' .. a[place + 1]
  end
  local values = call('HMGET', key('client', ch), unpack(fields))
  for i, place in ipairs(places) do
    local state, request = values[2 * i - 1], values[2 * i]
    if state and request then found[place] = state .. request else lib.commands_group(ended, a[place + 2], place) end
  end
end

-- Reads the ended commands of one user into `found`, by place.
lib.commands_read_ended = function(a, uh, places, found)
  for _, span in ipairs(lib.spans_of(uh).ended) do
    local left, names = {}, {}
    for _, place in ipairs(places) do
      if not found[place] then
        left[#left + 1] = place
        names[#names + 1] = a[place] .. a[place + 1]
      end
    end
    if #left == 0 then return end
    for i, whole in ipairs(call('HMGET', lib.spans_key(uh, span), unpack(names))) do
      local forgetAt = whole and tonumber(string.match(whole, lib.commands_forget_pattern))
      if forgetAt and forgetAt > now then found[left[i]] = whole end
    end
  end
end

-- Captures the stage: the 5th field.
lib.commands_stage_pattern = '^' .. string.rep('%Z*%z', 4) .. '(%Z*)%z'

-- Says whether a record has this stage and contains these texts. Plain searches cost a tenth of a pattern that reaches
-- the fields of the request.
lib.commands_may_match = function(whole, stage, texts)
  if stage and string.match(whole, lib.commands_stage_pattern) ~= stage then return false end
  for _, contained in ipairs(texts) do
    if not string.find(whole, contained, 1, true) then return false end
  end
  return true
end

acts['commands-read'] = function(a)
  local found, clients, ended, texts = {}, {}, {}, {}
  local first = 3 + tonumber(a[2])
  for i = 3, first - 1 do texts[#texts + 1] = a[i] end
  for place = first, #a, 3 do lib.commands_group(clients, a[place], place) end
  for ch, places in pairs(clients) do lib.commands_read_live(a, ch, places, found, ended) end
  for uh, places in pairs(ended) do lib.commands_read_ended(a, uh, places, found) end
  local reply, stage = { text(now) }, given(a[1])
  for place = first, #a, 3 do
    local whole = found[place]
    reply[#reply + 1] = whole and lib.commands_may_match(whole, stage, texts) and whole or false
  end
  return reply
end

-- act: live
-- Lists the commands of a client that have not ended. a: 1 the client's hash. Returns their ids.
-- class: allow_oom
acts['commands-live'] = function(a)
  local ids = {}
  for _, field in ipairs(call('HKEYS', key('client', a[1]))) do
    if string.byte(field) == 115 then ids[#ids + 1] = string.sub(field, 2) end
  end
  return ids
end

-- act: loads
-- Counts the live commands of clients. a: the hash of each client. Returns, for each, how many were dispatched and how
-- many were not. Ends early once the call has read `loads_most` fields, so there may be fewer pairs than clients: call
-- again for the others.
-- class: allow_oom

-- The most fields that one call reads, give or take those of one client (four of each live command).
lib.loads_most = 10000
lib.loads_left = lib.loads_most

acts['commands-loads'] = function(a)
  local found = {}
  for _, ch in ipairs(a) do
    if lib.loads_left <= 0 then break end
    local name, live = key('client', ch), 0
    local fields = call('HKEYS', name)
    lib.loads_left = lib.loads_left - #fields
    for _, field in ipairs(fields) do
      if string.byte(field) == 115 then live = live + 1 end
    end
    local waiting = tonumber(get(name, 'n') or 0)
    found[#found + 1] = live - waiting
    found[#found + 1] = waiting
  end
  return found
end

-- act: result
-- Reads the recorded result of a command. a: 1 its client's hash, 2 its id, 3 its user's hash, 4 how long results are
-- shown, ms. Returns the text, or false if there is none or it is no longer shown.
-- class: allow_oom
-- needs: lib-commands, lib-ended
-- grouped: yes
acts['commands-result'] = function(a)
  local rec = lib.commands_load(a[1], a[2], a[3])
  return rec and lib.commands_result(rec, a[4]) or false
end

-- act: sweep
-- Removes spans whose time is over. a: 1 the most spans to remove. Returns 1 if there are more, else 0.
-- class: allow_oom
-- needs: lib-ended
acts['commands-sweep'] = function(a)
  return lib.ended_sweep(tonumber(a[1])) and 1 or 0
end

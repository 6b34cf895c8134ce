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

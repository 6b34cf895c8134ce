-- Admits a command, or attaches to the one that has its id.
-- a: 1 most reservations of its scope, 2 most undispatched of its client, 3 most waiters of a command; 4 time to connect, 5 time to
--    answer (ms); 6 params; 7 its payload for history, 8 its spill (JSON), 9 the spill's bytes; 10 rpc id, 11 caller's node, 12 what it
--    waits for, 13 for how long (ms); 14 settings; 15 what was asked for, as the record has it;
--    16 client's hash, 17 command, 18 user's hash; of what was asked for: 19 scope's hash, 20 stream's hash, 21 user, 22 client, 23 digest,
--    24 scope, 25 instance, 26 trace, 27 parent span.
-- Returns {'admitted', record}, {'attached', record, result, now}, or {'refused', code}.
-- class: grow
-- needs: lib-commands, lib-ended, lib-record, lib-waiters
-- grouped: yes
lib.commands_attach = function(rec, wait)
  if rec.digest ~= wait.digest then return { 'refused', 'command_conflict' } end
  local result = lib.commands_result(rec, lib.commands_settings.retentionMs)
  local known, count = lib.waiters_find(rec, wait.rpcId)
  if not known and not lib.commands_satisfied(wait.waitFor, rec) then
    if count >= wait.most then return { 'refused', 'capacity_exceeded' } end
    lib.waiters_add(rec, wait.rpcId, wait.node, wait.waitFor, wait.withinMs)
  end
  return { 'attached', lib.commands_text(rec), result, text(now) }
end

lib.commands_refusal = function(rec, binding, asked)
  if not binding and asked.connectWithinMs == 0 then return 'not_connected' end
  local named = rec.namedInstanceId
  if binding and named and named ~= binding.instanceId then return 'instance_mismatch' end
  if size(key('reserved', rec.sh)) >= asked.scopeLimit then return 'capacity_exceeded' end
  if tonumber(get(key('client', rec.ch), 'n')[1] or 0) >= asked.queueLimit then return 'queue_full' end
  return nil
end

lib.commands_begin = function(rec, binding, asked)
  local connectDeadline = now + asked.connectWithinMs
  rec.version, rec.attempts, rec.lateResults = '1', '0', '0'
  rec.stage = binding and 'queued' or 'admitted'
  rec.lastProvenStage, rec.execution = rec.stage, 'not_written'
  rec.admittedAt = text(now)
  rec.connectDeadline = text(connectDeadline)
  rec.deadline = text(connectDeadline + asked.respondWithinMs)
  rec.expectedInstanceId = rec.namedInstanceId
  if not binding then return end
  rec.expectedInstanceId = rec.namedInstanceId or binding.instanceId
  rec.nodeId, rec.queuedOn, rec.queuedAt = binding.nodeId, binding.nodeId, rec.admittedAt
end

-- The place behind all that wait, and behind all that a link that is still coming up has moved.
lib.commands_place = function(rec, binding)
  local client = key('client', rec.ch)
  local last = tonumber(get(client, 'o')[1] or 0) + 1
  if binding and binding.moved then last = math.max(last, tonumber(binding.moved) + 1, tonumber(binding.upTo) + 1) end
  set(client, 'o', text(last))
  return text(last)
end

lib.commands_add = function(rec, params, binding)
  rec.place = lib.commands_place(rec, binding)
  local client = key('client', rec.ch)
  lib.commands_held().of[rec.name] = rec
  lib.commands_write(rec)
  set(client, 'a' .. rec.id, rec.asked)
  if params then set(client, 'p' .. rec.id, params) end
  lib.commands_count(rec.ch, 1)
  put(key('livenames', rec.uh), '0', rec.clientId .. '\0' .. rec.commandId)
  put(key('cmdusers'), '0', rec.userId .. '\0' .. rec.uh)
  put(key('due'), rec.nodeId and rec.deadline or rec.connectDeadline, rec.name)
  put(key('reserved', rec.sh), rec.deadline, lib.commands_name(rec))
  put(key('scopes'), '0', rec.scopeId)
end

reads['commands-admit'] = function(a)
  lib.commands_want(a[16], a[17], a[18])
end

acts['commands-admit'] = function(a)
  lib.commands_use(a[14])
  local rec = {
    asked = a[15], ch = a[16], id = a[17], commandId = a[17], name = a[16] .. a[17], uh = a[18], sh = a[19], sth = a[20], userId = a[21],
    clientId = a[22], digest = a[23], scopeId = a[24], namedInstanceId = given(a[25]), traceId = given(a[26]),
    parentSpanId = given(a[27]), waits = false, span = false,
  }
  local wait = {
    rpcId = a[10], node = a[11], waitFor = a[12], withinMs = tonumber(given(a[13])), most = tonumber(a[3]), digest = rec.digest,
  }
  local before = lib.commands_load(rec.ch, rec.id, rec.uh)
  if before then return lib.commands_attach(before, wait) end
  local binding = lib.commands_binding(rec.ch)
  local asked = {
    scopeLimit = tonumber(a[1]), queueLimit = tonumber(a[2]), connectWithinMs = tonumber(a[4]), respondWithinMs = tonumber(a[5]),
  }
  local refusal = lib.commands_refusal(rec, binding, asked)
  if refusal then return { 'refused', refusal } end
  lib.commands_begin(rec, binding, asked)
  lib.commands_add(rec, given(a[6]), binding)
  lib.commands_retain(rec, {
    id = rec.commandId .. ':command', kind = 'command', payload = given(a[7]), spill = given(a[8]), bytes = given(a[9]),
    instanceId = rec.expectedInstanceId, live = tonumber(rec.deadline) - now,
  })
  if not lib.commands_satisfied(wait.waitFor, rec) then
    lib.waiters_add(rec, wait.rpcId, wait.node, wait.waitFor, wait.withinMs)
  end
  -- Of a link that is still coming up the next part says so, in the order admitted.
  if binding and not binding.moved then lib.commands_offer(rec, binding.nodeId, given(a[6])) end
  return { 'admitted', lib.commands_text(rec) }
end

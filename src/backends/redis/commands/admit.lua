-- Admits a command, or attaches to the one that has its id.
-- a: 1 most reservations of its scope, 2 most undispatched of its client, 3 most waiters of a command; 4 time to connect, 5 time to
--    answer (ms); 6 params; 7 its payload for history, 8 its spill (JSON), 9 the spill's bytes; 10 rpc id, 11 caller's node, 12 what it
--    waits for, 13 for how long (ms); 14 settings; 15 what was asked for, as the record has it.
-- Returns {'admitted', record}, {'attached', record, result, now}, or {'refused', code}.
-- class: grow
-- needs: lib-commands, lib-record, lib-waiters
-- grouped: yes
lib.commands_attach = function(rec, wait)
  if rec.digest ~= wait.digest then return { 'refused', 'command_conflict' } end
  local result = lib.commands_result(rec, lib.commands_settings.retentionMs)
  local known = call('HEXISTS', key('waiters', rec.kh), wait.rpcId) == 1
  if not known and not lib.commands_satisfied(wait.waitFor, rec) then
    if lib.waiters_count(rec.kh) >= wait.most then return { 'refused', 'capacity_exceeded' } end
    lib.waiters_add(rec, wait.rpcId, wait.node, wait.waitFor, wait.withinMs)
  end
  return { 'attached', lib.commands_text(rec), result, text(now) }
end

lib.commands_refusal = function(rec, binding, asked)
  if not binding and asked.connectWithinMs == 0 then return 'not_connected' end
  local named = rec.namedInstanceId
  if binding and named and named ~= binding.instanceId then return 'instance_mismatch' end
  local reserved = key('reserved', rec.sh)
  fact('collected:' .. reserved, function()
    return call('ZREMRANGEBYSCORE', reserved, '-inf', text(now - lib.commands_collected))
  end)
  if size(reserved) >= asked.scopeLimit then return 'capacity_exceeded' end
  if size(key('waiting', rec.ch)) >= asked.queueLimit then return 'queue_full' end
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
  local last = lib.commands_last(key('waiting', rec.ch))
  if not binding or not binding.moved then return last end
  return text(math.max(tonumber(last), tonumber(binding.moved) + 1, tonumber(binding.upTo) + 1))
end

lib.commands_add = function(rec, params, binding)
  local name, ttl = lib.commands_name(rec), text(tonumber(rec.deadline) - now + lib.commands_live_grace + lib.commands_grace)
  lib.commands_write(rec, ttl)
  if params then call('SET', key('params', rec.kh), params, 'PX', ttl) end
  drop(key('ended'), name .. '\0' .. rec.kh)
  put(key('cmds'), '0', name)
  put(key('due'), rec.nodeId and rec.deadline or rec.connectDeadline, rec.kh)
  put(key('waiting', rec.ch), lib.commands_place(rec, binding), rec.kh)
  put(key('reserved', rec.sh), rec.deadline, name)
  put(key('scopes'), '0', rec.scopeId)
end

acts['commands-admit'] = function(a)
  local rec = lib.commands_asked({ asked = a[15] })
  lib.commands_use(a[14])
  local wait = {
    rpcId = a[10], node = a[11], waitFor = a[12], withinMs = tonumber(given(a[13])), most = tonumber(a[3]), digest = rec.digest,
  }
  local before = lib.commands_load(rec.kh)
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
  if binding and not binding.moved then lib.commands_post(rec, binding.nodeId, 'command') end
  return { 'admitted', lib.commands_text(rec) }
end

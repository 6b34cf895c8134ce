-- The rules by which an admission is refused. They write nothing, so commands-preview uses them too.
-- needs: lib-waiters

-- Returns why a wait may not attach to the command that has its id, or nil; and then whether the wait must be
-- registered. `wait`: digest, rpcId, waitFor, most.
lib.admission_attach = function(rec, wait)
  if rec.digest ~= wait.digest then return 'command_conflict', false end
  local known, count = lib.waiters_find(rec, wait.rpcId)
  if known or lib.commands_satisfied(wait.waitFor, rec) then return nil, false end
  if count >= wait.most then return 'capacity_exceeded', false end
  return nil, true
end

-- Return how many reservations the scope of a command holds, and how many commands of its client were not dispatched.
lib.admission_reserved = function(rec) return size(key('reserved', rec.sh)) end
lib.admission_queued = function(rec) return tonumber(get(key('client', rec.ch), 'n')[1] or 0) end

-- Returns why a command with a new id may not be admitted, or nil. `terms`: connectWithinMs, scopeLimit, queueLimit.
lib.admission_refusal = function(rec, binding, terms)
  if not binding and terms.connectWithinMs == 0 then return 'not_connected' end
  local named = rec.namedInstanceId
  if binding and named and named ~= binding.instanceId then return 'instance_mismatch' end
  if lib.admission_reserved(rec) >= terms.scopeLimit then return 'capacity_exceeded' end
  if lib.admission_queued(rec) >= terms.queueLimit then return 'queue_full' end
  return nil
end

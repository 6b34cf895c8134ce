-- The rules by which an admission is refused. They write nothing, so commands-preview uses them too.
-- needs: lib-waiters

-- Why a wait may not attach to the command that has its id, or nil; then whether the wait must be registered.
-- `wait`: digest, number, node, waitFor, most.
lib.admission_attach = function(rec, wait)
  if rec.digest ~= wait.digest then return 'command_conflict', false end
  if lib.commands_satisfied(wait.waitFor, rec) then return nil, false end
  local known, room = lib.waiters_find(rec, wait)
  if not room then return 'capacity_exceeded', false end
  return nil, not known
end

-- How many reservations the scope of a command holds, and how many commands of its client were not dispatched.
lib.admission_reserved = function(rec) return size(key('reserved', rec.sh)) end
lib.admission_queued = function(rec) return tonumber(get(key('client', rec.ch), 'n')[1] or 0) end

-- Why a command with an unknown id may not be admitted, or nil. `terms`: connectWithinMs, scopeLimit, queueLimit.
lib.admission_refusal = function(rec, binding, terms)
  if not binding and terms.connectWithinMs == 0 then return 'not_connected' end
  local named = rec.namedInstanceId
  if binding and named and named ~= binding.instanceId then return 'instance_mismatch' end
  if lib.admission_reserved(rec) >= terms.scopeLimit then return 'capacity_exceeded' end
  if lib.admission_queued(rec) >= terms.queueLimit then return 'queue_full' end
  return nil
end

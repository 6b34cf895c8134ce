-- The rules by which a command is not admitted. They write nothing, so commands-preview uses them too.
-- needs: lib-commands, lib-shares, lib-waiters

-- Returns why a wait may not attach to this command, or nil. The second result says whether the wait must be
-- registered. `wait`: digest, number, node, waitFor, most.
lib.admission_attach = function(rec, wait)
  if rec.digest ~= wait.digest then return 'command_conflict', false end
  if lib.commands_satisfied(wait.waitFor, rec) then return nil, false end
  local known, room = lib.waiters_find(rec, wait)
  if not room then return 'capacity_exceeded', false end
  return nil, not known
end

-- `admission_reserved` returns how many reservations the scope of a command holds, `admission_queued` how many commands
-- of its client were not dispatched.
lib.admission_reserved = function(rec) return size(key('reserved', rec.sh)) end
lib.admission_queued = function(rec) return tonumber(get(key('client', rec.ch), 'n') or 0) end

-- Says whether a user may not take a further reservation of a scope that it shares with others: after that less than a
-- quarter of the scope would be left, and the user holds as many as each member may hold then.
lib.admission_member_full = function(rec, terms)
  if not terms.memberLimit or lib.admission_reserved(rec) + 1 <= terms.scopeLimit * lib.shares_borrowed then return false end
  return tonumber(get(key('members', rec.sh), rec.uh) or 0) >= terms.memberLimit
end

-- Returns why there is no room for the mark of a command's id, or nil.
lib.admission_no_mark = function(rec)
  return lib.shares_refusal(lib.commands_settings.shares.m, 'm', rec.uh, 1)
end

-- Returns why there is no room for the params of a command, or nil. Small params for a connected client without a queue
-- are never refused, because they are about to be dispatched. `params`: bytes, and whether they are small.
lib.admission_no_room = function(rec, binding, params)
  if params.bytes == 0 or (binding and params.small and lib.admission_queued(rec) == 0) then return nil end
  return lib.shares_refusal(lib.commands_settings.shares.q, 'q', rec.uh, params.bytes)
end

-- Returns why a command with a new id may not be admitted, or nil. The second result is the share that is used up, if
-- there is one other than `marks`. `terms`: connectWithinMs, scopeLimit, memberLimit or nil, queueLimit, chosenId,
-- params (see admission_no_room).
lib.admission_refusal = function(rec, binding, terms)
  if not binding and terms.connectWithinMs == 0 then return 'not_connected' end
  local named = rec.namedInstanceId
  if binding and named and named ~= binding.instanceId then return 'instance_mismatch' end
  if lib.admission_reserved(rec) >= terms.scopeLimit then return 'capacity_exceeded' end
  if lib.admission_member_full(rec, terms) then return 'share_exceeded', 'scope' end
  if lib.admission_queued(rec) >= terms.queueLimit then return 'queue_full' end
  local no_mark = terms.chosenId and lib.admission_no_mark(rec)
  if no_mark then return no_mark end
  return lib.admission_no_room(rec, binding, terms.params), 'queued_bytes'
end

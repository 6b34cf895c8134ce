-- Commands: what every act on one shares. A record is a table of texts as its hash holds it: the fields of core's Command (absent: null;
-- error, firstLate and sightings as JSON), and ours: kh, ch, uh, sh, sth (hashes of its command, client, user, scope and stream),
-- queuedOn (the node that it was last queued on), progressRows, progressRowAt, and, once it has ended, forgetAt.
-- Live records outlive their deadline by this much, should nobody be there to end them.
lib.commands_live_grace = 86400000
lib.commands_grace = 3600000
-- So long after it fell due nothing of a live command is left, and what still names it is garbage.
lib.commands_collected = lib.commands_live_grace + 2 * lib.commands_grace

-- What the acts are told beside their own arguments (JSON): retentionMs, streamMessages, terminalMs, streamsPerUser where it is not the
-- ordinary one, and words (code -> text) for the ends.
lib.commands_use = function(json)
  if lib.commands_json == json then return end
  lib.commands_json = json
  lib.commands_settings = cjson.decode(json)
end

lib.commands_name = function(rec)
  return rec.userId .. '\0' .. rec.clientId .. '\0' .. rec.commandId
end

-- A record; nil where there is none, or none any more: one that is over goes then.
lib.commands_load = function(kh)
  local rec = hash(key('cmd', kh))
  if not rec then return nil end
  if rec.forgetAt and tonumber(rec.forgetAt) <= now then
    lib.commands_forget(lib.commands_name(rec), kh)
    return nil
  end
  return rec
end

lib.commands_forget = function(name, kh)
  call('UNLINK', key('cmd', kh), key('params', kh), key('result', kh))
  call('ZREM', key('cmds'), name)
  call('ZREM', key('ended'), name .. '\0' .. kh)
end

-- Forgets at most `limit` (32) records that are over. True when there are more.
lib.commands_sweep = function(limit)
  limit = limit or 32
  local ended = call('ZRANGEBYSCORE', key('ended'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  for i = 1, math.min(limit, #ended) do
    local name, kh = string.match(ended[i], '^(.*)%z(.-)$')
    local forgetAt = call('HMGET', key('cmd', kh), 'version', 'forgetAt')
    -- Another command may have come under the same id since its record was collected.
    if forgetAt[1] and (not forgetAt[2] or tonumber(forgetAt[2]) > now) then call('ZREM', key('ended'), ended[i])
    else lib.commands_forget(name, kh) end
  end
  call('ZREMRANGEBYSCORE', key('due'), '-inf', text(now - lib.commands_collected))
  return #ended > limit
end

-- Writes fields that are no move of the command.
lib.commands_note = function(rec, fields)
  for field, value in pairs(fields) do rec[field] = value end
  call('HSET', key('cmd', rec.kh), unpack(flat(fields)))
end

-- Changes a record, the only way in which one does: `changes` are written, `removed` (a list of names) become null.
lib.commands_move = function(rec, changes, removed)
  changes.version = text(tonumber(rec.version) + 1)
  lib.commands_note(rec, changes)
  for _, field in ipairs(removed or {}) do
    rec[field] = nil
    call('HDEL', key('cmd', rec.kh), field)
  end
end

-- A score that puts a member behind all others.
lib.commands_last = function(name)
  local last = call('ZREVRANGE', name, 0, 0, 'WITHSCORES')
  return text(tonumber(last[2] or 0) + 1)
end

-- What the mailbox of a node is told of a command.
lib.commands_post = function(rec, node, kind, reason)
  local fields = { userId = rec.userId, clientId = rec.clientId, commandId = rec.commandId, reason = reason }
  lib.nodes_post(node, kind, fields)
end

-- Retains a history row of a command, in its client's stream. `part`: id, kind, and, where given, instanceId, error, payload, spill, bytes.
lib.commands_retain = function(rec, part)
  local settings = lib.commands_settings
  part.userId, part.clientId, part.commandId = rec.userId, rec.clientId, rec.commandId
  part.suffix, part.uh, part.sth = 'clients/' .. rec.clientId, rec.uh, rec.sth
  part.traceId, part.parentSpanId = rec.traceId, rec.parentSpanId
  part.instanceId = part.instanceId or rec.boundInstanceId
  part.retentionMs, part.streamMessages = settings.retentionMs, settings.streamMessages
  part.streamsPerUser = settings.streamsPerUser
  return lib.history_retain(part)
end

-- Takes a command out of everything that only live ones are in.
lib.commands_leave = function(rec)
  local name = lib.commands_name(rec)
  call('UNLINK', key('params', rec.kh))
  call('ZREM', key('due'), rec.kh)
  call('ZREM', key('waiting', rec.ch), rec.kh)
  call('ZREM', key('running', rec.ch), rec.kh)
  call('ZREM', key('reserved', rec.sh), name)
  if call('EXISTS', key('reserved', rec.sh)) == 0 then call('ZREM', key('scopes'), rec.scopeId) end
end

-- Ends a command: result, record, reservation, replies. The only place where one becomes terminal.
lib.commands_conclude = function(rec, changes, result)
  local kept = lib.commands_settings.terminalMs
  changes.stage = 'terminal'
  changes.terminalAt = text(now)
  changes.forgetAt = text(now + kept)
  local ttl = text(kept + lib.commands_grace)
  if result then call('SET', key('result', rec.kh), result, 'PX', ttl) end
  lib.commands_move(rec, changes)
  call('PEXPIRE', key('cmd', rec.kh), ttl)
  lib.commands_leave(rec)
  call('ZADD', key('ended'), rec.forgetAt, lib.commands_name(rec) .. '\0' .. rec.kh)
  lib.waiters_reply(rec)
end

-- Ends a command without its client's word: `expired` proves that nothing was written, else the outcome is unknown. After the store lost
-- something nothing is proven.
lib.commands_end = function(rec, code)
  local words = lib.commands_settings.words or {}
  local problem = cjson.encode({ code = code, message = words[code] or code })
  lib.commands_retain(rec, { id = rec.commandId .. ':end', kind = 'error', error = problem })
  local unknown = rec.dispatchedAt or code == 'store_lost'
  lib.commands_conclude(rec, {
    outcome = unknown and 'outcome_unknown' or 'expired',
    execution = unknown and 'may_have_run' or 'not_written',
    error = problem,
    reason = code,
  })
  if rec.dispatchedAt and rec.nodeId then lib.commands_post(rec, rec.nodeId, 'ended') end
end

-- Its link is gone: what was queued waits for the next. What was dispatched stays as it is.
lib.commands_park = function(kh)
  local rec = lib.commands_load(kh)
  if rec and rec.stage == 'queued' then lib.commands_move(rec, { stage = 'admitted' }, { 'nodeId' }) end
end

-- The link that a client is bound to; nil where it is bound to none, or to one of a node that is dead.
lib.commands_binding = function(ch)
  local binding = hash(key('binding', ch))
  if binding and lib.nodes_alive(binding.nodeId) then return binding end
  return nil
end

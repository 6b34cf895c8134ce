-- Commands: what every act on one shares. Their records: lib-record.lua.
-- needs: lib-history, lib-nodes, lib-record, lib-waiters

-- Writes a record as it is now, with a new expiry (ms) or the one that it has: once in a call of grouped acts.
lib.commands_write = function(rec, ttl)
  rec.whole, rec.ttl = false, ttl or rec.ttl
  if rec.unwritten then return end
  rec.unwritten = true
  lib.commands_held().of[rec.kh] = rec
  atEnd(function() lib.commands_put(rec) end)
end

lib.commands_put = function(rec)
  if not rec.unwritten then return end
  local ttl = rec.ttl
  rec.unwritten, rec.ttl = false, false
  if ttl then call('SET', key('cmd', rec.kh), lib.commands_text(rec), 'PX', ttl)
  else call('SET', key('cmd', rec.kh), lib.commands_text(rec), 'KEEPTTL') end
end

-- Records that acts of this call have read or written, by hash.
lib.commands_held = function()
  if not grouping then return { of = {} } end
  local held = facts.records
  if held then return held end
  held = { of = {} }
  facts.records = held
  return held
end

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

-- A record as it stands; nil where there is none.
lib.commands_read = function(kh)
  local held = lib.commands_held().of
  if held[kh] then return held[kh] end
  local whole = call('GET', key('cmd', kh))
  if not whole then return nil end
  local rec = lib.commands_parse(whole)
  rec.kh, held[kh] = kh, rec
  return rec
end

-- A record; nil where there is none, or none any more: one that is over goes then.
lib.commands_load = function(kh)
  local rec = lib.commands_read(kh)
  if not rec then return nil end
  if rec.forgetAt and tonumber(rec.forgetAt) <= now then
    lib.commands_forget(lib.commands_name(rec), kh)
    return nil
  end
  return rec
end

lib.commands_forget = function(name, kh)
  local held = lib.commands_held().of
  if held[kh] then held[kh].unwritten, held[kh] = false, nil end
  call('UNLINK', key('cmd', kh), key('params', kh), key('result', kh))
  drop(key('cmds'), name)
  drop(key('ended'), name .. '\0' .. kh)
end

-- Forgets at most `limit` (32) records that are over. True when there are more.
lib.commands_sweep = function(limit)
  limit = limit or 32
  local ended = call('ZRANGEBYSCORE', key('ended'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  for i = 1, math.min(limit, #ended) do
    local name, kh = string.match(ended[i], '^(.*)%z(.-)$')
    local rec = lib.commands_read(kh)
    -- Another command may have come under the same id since its record was collected.
    if rec and (not rec.forgetAt or tonumber(rec.forgetAt) > now) then call('ZREM', key('ended'), ended[i])
    else lib.commands_forget(name, kh) end
  end
  call('ZREMRANGEBYSCORE', key('due'), '-inf', text(now - lib.commands_collected))
  return #ended > limit
end

-- Writes fields that are no move of the command; `ttl`: as commands_write has it. A reason may be a client's own word: what a record cannot
-- hold is left out.
lib.commands_note = function(rec, fields, ttl)
  if fields.reason then fields.reason = string.gsub(fields.reason, '%z', '') end
  for field, value in pairs(fields) do rec[field] = value end
  lib.commands_write(rec, ttl)
end

-- Changes a record, the only way in which one does: `changes` are written; `more`: `removed` (a list of names) become null, `ttl`.
lib.commands_move = function(rec, changes, more)
  changes.version = text(tonumber(rec.version) + 1)
  for _, field in ipairs(more and more.removed or {}) do rec[field] = false end
  lib.commands_note(rec, changes, more and more.ttl)
end

-- A score that puts a member behind all others.
lib.commands_last = function(name)
  return text(highest(name) + 1)
end

-- What the mailbox of a node is told of a command.
lib.commands_post = function(rec, node, kind, reason)
  local fields = { userId = rec.userId, clientId = rec.clientId, commandId = rec.commandId, reason = reason }
  lib.nodes_post(node, kind, fields)
end

-- Retains a history row of a command, in its client's stream. `part`: id, kind, and, where given, instanceId, error, payload, spill, bytes,
-- live (see history_retain).
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
  unlink(key('params', rec.kh))
  drop(key('due'), rec.kh)
  drop(key('waiting', rec.ch), rec.kh)
  drop(key('running', rec.ch), rec.kh)
  drop(key('reserved', rec.sh), name)
  fact('left:' .. rec.sh, function()
    atEnd(function()
      if size(key('reserved', rec.sh)) == 0 then drop(key('scopes'), rec.scopeId) end
    end)
    return true
  end)
end

-- A result is kept this much longer than it is shown (retentionMs), for the mailboxes that it is fetched for.
lib.commands_fetched = 60000

-- The recorded result of a command; false where there is none, or it was recorded `retentionMs` ago or longer.
lib.commands_result = function(rec, retentionMs)
  if rec.stage ~= 'terminal' or tonumber(rec.terminalAt) + tonumber(retentionMs) <= now then return false end
  return call('GET', key('result', rec.kh))
end

-- Ends a command: result, record, reservation, replies. The only place where one becomes terminal.
lib.commands_conclude = function(rec, changes, result)
  local kept = lib.commands_settings.terminalMs
  changes.stage = 'terminal'
  changes.terminalAt = text(now)
  changes.forgetAt = text(now + kept)
  local ttl = text(kept + lib.commands_grace)
  if result then
    local shown = lib.commands_settings.retentionMs + lib.commands_fetched
    call('SET', key('result', rec.kh), result, 'PX', text(math.min(shown, kept + lib.commands_grace)))
  end
  -- The expiry that it was admitted with is later, as a rule.
  local later = now + kept > tonumber(rec.deadline) + lib.commands_live_grace
  lib.commands_move(rec, changes, { ttl = later and ttl or nil })
  lib.commands_leave(rec)
  put(key('ended'), rec.forgetAt, lib.commands_name(rec) .. '\0' .. rec.kh)
  lib.waiters_reply(rec, result)
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
  if rec and rec.stage == 'queued' then lib.commands_move(rec, { stage = 'admitted' }, { removed = { 'nodeId' } }) end
end

-- The link that a client is bound to; nil where it is bound to none, or to one of a node that is dead.
lib.commands_binding = function(ch)
  local binding = fact('binding:' .. ch, function() return hash(key('binding', ch)) or false end)
  if binding and lib.nodes_alive(binding.nodeId) then return binding end
  return nil
end

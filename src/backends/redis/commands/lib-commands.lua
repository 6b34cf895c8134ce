-- Commands: what every act on one shares. Their records: lib-record.lua; those that ended: lib-ended.lua.
-- A client's HASH holds its live commands: `s<id>` the state, `a<id>` what was asked for, `p<id>` the params, `w<id>` who waits. Beside them
-- `b`: the link that it is bound to; `n`: how many were not dispatched; `o`: the last place that was given. It goes with its last field.
-- A command is named by its client's hash and its id, one text.
-- needs: lib-ended, lib-history, lib-nodes, lib-record, lib-waiters

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

-- Records that acts of this call have read or written, by name.
lib.commands_held = function()
  if not grouping then return { of = {} } end
  local held = facts.records
  if held then return held end
  held = { of = {} }
  facts.records = held
  return held
end

-- The fields that a command of a client has.
lib.commands_fields = function(id)
  return { 's' .. id, 'a' .. id, 'w' .. id }
end

-- Says what an act will read of a command and its client; `uh`: it may have ended.
lib.commands_want = function(ch, id, uh)
  want(key('client', ch), 'b', 'n', 'o', unpack(lib.commands_fields(id)))
  if not uh then return end
  for _, span in ipairs(lib.ended_spans(uh)) do want(lib.ended_key('ended', uh, span), ch .. id) end
end

-- The record of a live command; nil where there is none.
lib.commands_live = function(ch, id)
  local held, name = lib.commands_held().of, ch .. id
  local known = held[name]
  if known then return not known.span and known or nil end
  local found = get(key('client', ch), unpack(lib.commands_fields(id)))
  if not found[1] then return nil end
  local rec = lib.commands_parse(found[1], found[2])
  rec.ch, rec.id, rec.name, rec.waits = ch, id, name, found[3]
  held[name] = rec
  return rec
end

-- A record, live or ended; nil where there is none, or none any more.
lib.commands_load = function(ch, id, uh)
  local held, name = lib.commands_held().of, ch .. id
  local rec = held[name] or lib.commands_live(ch, id) or lib.ended_read(uh, name)
  if not rec then return nil end
  rec.ch, rec.id, rec.name = ch, id, name
  held[name] = rec
  return rec
end

-- Writes a record as it is now, once in a call of grouped acts.
lib.commands_write = function(rec)
  rec.rev, rec.state, rec.whole = text(tonumber(rec.rev or 0) + 1), false, false
  if rec.span then
    return set(lib.ended_key('ended', rec.uh, rec.span), rec.name, function() return lib.commands_text(rec) end)
  end
  set(key('client', rec.ch), 's' .. rec.id, function() return lib.commands_state(rec) end)
end

-- Writes fields that are no move of the command. A reason may be a client's own word: what a record cannot hold is left out.
lib.commands_note = function(rec, fields)
  if fields.reason then fields.reason = string.gsub(fields.reason, '%z', '') end
  for field, value in pairs(fields) do rec[field] = value end
  lib.commands_write(rec)
end

-- Changes a record, the only way in which one does: `changes` are written; `removed` (a list of names) become null.
lib.commands_move = function(rec, changes, removed)
  changes.version = text(tonumber(rec.version) + 1)
  for _, field in ipairs(removed or {}) do rec[field] = false end
  lib.commands_note(rec, changes)
end

-- Changes how many commands of a client were not dispatched. Their places begin anew when there are none.
lib.commands_count = function(ch, by)
  local name = key('client', ch)
  local count = tonumber(get(name, 'n')[1] or 0) + by
  if count > 0 then return set(name, 'n', text(count)) end
  set(name, 'n', false)
  set(name, 'o', false)
end

-- Whether a text, or false, begins so.
lib.commands_starts = function(whole, start)
  return whole and string.sub(whole, 1, #start) == start
end

-- Tells a node that a command waits for it, with the whole record, so that the node can say what the record will be (see commands/held.ts).
lib.commands_offer = function(rec, node, params)
  lib.nodes_post(node, 'command', {
    state = lib.commands_state(rec), asked = rec.asked, waits = rec.waits or nil,
    params = params and #params <= lib.commands_carried and params or nil,
  })
end
-- Params of more bytes are read by who dispatches.
lib.commands_carried = 4096

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
  local name, client = lib.commands_name(rec), key('client', rec.ch)
  for _, field in ipairs({ 's', 'a', 'p', 'w' }) do set(client, field .. rec.id, false) end
  if not rec.dispatchedAt then lib.commands_count(rec.ch, -1) end
  drop(key('due'), rec.name)
  drop(key('livenames', rec.uh), rec.clientId .. '\0' .. rec.commandId)
  drop(key('reserved', rec.sh), name)
  fact('left:' .. rec.sh, function()
    atEnd(function()
      if size(key('reserved', rec.sh)) == 0 then drop(key('scopes'), rec.scopeId) end
    end)
    return true
  end)
end

-- Ends a command: result, record, reservation, replies. With commands-end, which is told the record, the only place where one becomes
-- terminal.
lib.commands_conclude = function(rec, changes, result)
  local kept = lib.commands_settings.terminalMs
  changes.stage = 'terminal'
  changes.terminalAt = text(now)
  changes.forgetAt = text(now + kept)
  if result then changes.resultIn = lib.ended_result(rec, result, lib.commands_settings) end
  lib.commands_leave(rec)
  rec.forgetAt = changes.forgetAt
  lib.ended_add(rec, kept)
  lib.commands_move(rec, changes)
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
lib.commands_park = function(rec)
  if rec.stage == 'queued' then lib.commands_move(rec, { stage = 'admitted' }, { 'nodeId' }) end
end

-- The link of a client as its HASH has it: nodeId, instanceId, epoch and, while it is coming up, upTo and moved. Nil where it is bound to none.
lib.commands_link = function(ch)
  local bound = get(key('client', ch), 'b')[1]
  if not bound then return nil end
  local nodeId, epoch, instanceId, upTo, moved = string.match(bound, '^(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z$')
  return { nodeId = nodeId, instanceId = instanceId, epoch = epoch, upTo = given(upTo), moved = given(moved) }
end

lib.commands_bind_to = function(ch, link)
  local nul = '\0'
  local bound = link.nodeId .. nul .. link.epoch .. nul .. link.instanceId .. nul .. (link.upTo or '') .. nul .. (link.moved or '') .. nul
  set(key('client', ch), 'b', bound)
end

-- The link that a client is bound to; nil where it is bound to none, or to one of a node that is dead.
lib.commands_binding = function(ch)
  local link = lib.commands_link(ch)
  if link and lib.nodes_alive(link.nodeId) then return link end
  return nil
end

-- The ids of a client's live commands whose state passes `wanted`, by place: a list of records.
lib.commands_of = function(ch, wanted)
  local name, ids = key('client', ch), {}
  for _, field in ipairs(call('HKEYS', name)) do
    if string.byte(field) == 115 then ids[#ids + 1] = string.sub(field, 2) end
  end
  local found = {}
  for first = 1, #ids, 1000 do
    local fields = {}
    for i = first, math.min(#ids, first + 999) do fields[#fields + 1] = 's' .. ids[i] end
    for i, state in ipairs(call('HMGET', name, unpack(fields))) do
      local place, stage = string.match(state, '^%Z*%z%Z*%z(%Z*)%z%Z*%z(%Z*)%z')
      if wanted(stage) then found[#found + 1] = { id = ids[first + i - 1], place = tonumber(place) } end
    end
  end
  table.sort(found, function(a, b) return a.place < b.place end)
  return found
end

lib.commands_undispatched = function(stage) return stage == 'queued' or stage == 'admitted' end
lib.commands_running = function(stage) return not lib.commands_undispatched(stage) end

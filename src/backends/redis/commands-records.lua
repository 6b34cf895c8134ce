-- How live commands are stored, and the functions that all acts on commands share. See lib-record.lua for records,
-- lib-ended.lua for ended commands, lib-due.lua for deadlines. A client's HASH has its live commands: `s<id>` the
-- state, `a<id>` the request, `p<id>` the params, `w<id>` the waiters; and of the client: `b` the link that it is bound
-- to, `n` how many commands were not dispatched, `o` the highest position in its queue that was given to a command. `n`
-- and `o` are removed once every command was dispatched. A command's name is its client's hash and its id, as one text.
-- needs: lib-due, lib-ended, lib-history, lib-nodes, lib-record, lib-shares, lib-spans, lib-waiters

-- Takes the settings of an act (JSON): retentionMs, streamMessages, terminalMs, streamsPerUser if it is not the
-- default, shares (share -> guarantee and total), and words (code -> text) for acts that end commands.
lib.commands_use = function(json)
  if lib.commands_json == json then return end
  lib.commands_json = json
  lib.commands_settings = cjson.decode(json)
end

lib.commands_name = function(rec)
  return rec.userId .. '\0' .. rec.clientId .. '\0' .. rec.commandId
end

-- Returns a table whose `of` has, by name, the records that the grouped acts of this call have read or written. It is
-- empty if the act is not grouped.
lib.commands_held = function()
  if not grouping then return { of = {} } end
  local held = facts.records
  if held then return held end
  held = { of = {} }
  facts.records = held
  return held
end

-- Declares what an act will read of a command and its client. `uh`: given if the command may have ended.
lib.commands_want = function(ch, id, uh)
  local client = key('client', ch)
  want(client, 'b', 'n', 'o')
  want(client, 's' .. id, 'a' .. id, 'w' .. id)
  if not uh then return end
  for _, span in ipairs(lib.spans_of(uh).ended) do want(lib.spans_key(uh, span), ch .. id) end
end

-- Reads the record of a live command; nil if there is none.
lib.commands_live = function(ch, id)
  local held, name = lib.commands_held().of, ch .. id
  local known = held[name]
  if known then return not known.span and known or nil end
  local client = key('client', ch)
  local state = get(client, 's' .. id)
  if not state then return nil end
  local rec = lib.commands_parse(state, get(client, 'a' .. id))
  rec.ch, rec.id, rec.name, rec.waits = ch, id, name, get(client, 'w' .. id)
  held[name] = rec
  return rec
end

-- Reads the record of a live or ended command; nil if there is none.
lib.commands_load = function(ch, id, uh)
  local held, name = lib.commands_held().of, ch .. id
  local rec = held[name] or lib.commands_live(ch, id) or lib.ended_read(uh, name)
  if not rec then return nil end
  rec.ch, rec.id, rec.name = ch, id, name
  held[name] = rec
  return rec
end

-- Writes a record; in a call of grouped acts only the last version is written.
lib.commands_write = function(rec)
  rec.rev, rec.state, rec.whole = text(tonumber(rec.rev or 0) + 1), false, false
  if rec.span then
    return set(lib.spans_key(rec.uh, rec.span), rec.name, function() return lib.commands_text(rec) end)
  end
  set(key('client', rec.ch), 's' .. rec.id, function() return lib.commands_state(rec) end)
end

-- Writes fields without a new version of the command. Removes NULs from a reason that a client gave, because a record
-- cannot hold them.
lib.commands_note = function(rec, fields)
  if fields.reason then fields.reason = string.gsub(fields.reason, '%z', '') end
  for field, value in pairs(fields) do rec[field] = value end
  lib.commands_write(rec)
end

-- Writes a new version of a command. The fields in `removed` become null.
lib.commands_move = function(rec, changes, removed)
  changes.version = text(tonumber(rec.version) + 1)
  for _, field in ipairs(removed or {}) do rec[field] = false end
  lib.commands_note(rec, changes)
end

-- Adds `by` to the number of commands of a client that were not dispatched.
lib.commands_count = function(ch, by)
  local name = key('client', ch)
  set(name, 'n', text(tonumber(get(name, 'n') or 0) + by))
end

-- Counts a reservation of a user in a scope that it shares with others.
lib.commands_count_member = function(rec, by)
  if rec.scopeId == rec.userId then return end
  local members = key('members', rec.sh)
  local held = tonumber(get(members, rec.uh) or 0) + by
  set(members, rec.uh, held > 0 and text(held))
end

-- Stops counting the bytes of a command's params. Called when the command is dispatched, and when it ends.
lib.commands_unqueue = function(rec)
  if not rec.queuedBytes then return end
  lib.shares_take('q', rec.uh, -tonumber(rec.queuedBytes))
  rec.queuedBytes = false
end

-- Restarts the positions in a client's queue at 1 once all of its commands were dispatched.
lib.commands_renumber = function(ch)
  local name = key('client', ch)
  if get(name, 'n') ~= '0' then return end
  set(name, 'n', false)
  set(name, 'o', false)
end

-- Says whether the text `whole` starts with `start`. Not true if `whole` is nil or false.
lib.commands_starts = function(whole, start)
  return whole and string.sub(whole, 1, #start) == start
end

-- Posts a waiting command to a node with its whole record, so that the node can predict the next record (see
-- commands/held.ts).
lib.commands_offer = function(rec, node, params)
  lib.nodes_post(node, 'command', {
    state = lib.commands_state(rec), request = rec.request, waits = rec.waits or nil,
    params = params and #params <= lib.commands_carried and params or nil,
  })
end
-- The most bytes of params in a mailbox row. Larger params are not posted: the act that dispatches returns them.
lib.commands_carried = 4096

-- Posts a row that names a command to a node.
lib.commands_post = function(rec, node, kind, reason)
  local fields = { userId = rec.userId, clientId = rec.clientId, commandId = rec.commandId, reason = reason }
  lib.nodes_post(node, kind, fields)
end

-- Retains a history row of a command, in its client's stream. `part`: id, kind, and, where given, instanceId, error,
-- payload, spill, bytes.
lib.commands_retain = function(rec, part)
  local settings = lib.commands_settings
  return lib.history_retain({
    id = part.id, kind = part.kind, payload = part.payload, spill = part.spill, bytes = part.bytes, error = part.error,
    instanceId = part.instanceId or rec.boundInstanceId, userId = rec.userId, clientId = rec.clientId, commandId = rec.commandId,
    suffix = 'clients/' .. rec.clientId, uh = rec.uh, sth = rec.sth, traceId = rec.traceId, parentSpanId = rec.parentSpanId,
    retentionMs = settings.retentionMs, streamMessages = settings.streamMessages, streamsPerUser = settings.streamsPerUser,
    shares = settings.shares.h,
  })
end

-- Removes a command from the keys of live commands.
lib.commands_leave = function(rec)
  local name, client = lib.commands_name(rec), key('client', rec.ch)
  set(client, 's' .. rec.id, false)
  set(client, 'a' .. rec.id, false)
  set(client, 'p' .. rec.id, false)
  set(client, 'w' .. rec.id, false)
  if not rec.dispatchedAt then lib.commands_count(rec.ch, -1) end
  lib.commands_unqueue(rec)
  lib.commands_renumber(rec.ch)
  if not rec.queuedAt then lib.due_connected(rec) end
  drop(key('reserved', rec.sh), name)
  lib.commands_count_member(rec, -1)
  fact('left', rec.sh, lib.commands_left, rec.scopeId)
end

-- Removes a scope from the index of scopes at the end of the call, if it has no reservations then.
lib.commands_left = function(sh, scopeId)
  atEnd(function()
    if size(key('reserved', sh)) == 0 then drop(key('scopes'), scopeId) end
  end)
  return true
end

-- Ends a command: stores its result and record, frees its reservation, replies to its waiters. A command becomes
-- terminal only here and in commands-end. `reported`: see waiters_reply.
lib.commands_conclude = function(rec, changes, result, reported)
  local kept = lib.commands_settings.terminalMs
  changes.stage = 'terminal'
  changes.terminalAt = text(now)
  changes.forgetAt = text(now + kept)
  if result then changes.resultIn = lib.ended_result(rec, result, lib.commands_settings) end
  lib.commands_leave(rec)
  rec.forgetAt = changes.forgetAt
  lib.ended_add(rec, kept)
  lib.commands_move(rec, changes)
  lib.waiters_reply(rec, result, reported)
end

-- Ends a command without a report of its client: as `expired` if nothing was written to the client, else as
-- `outcome_unknown`. After a loss of the store the outcome is always unknown.
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

-- Parks a queued command whose link is gone: it waits for the next link. A dispatched command stays as it is.
lib.commands_park = function(rec)
  if rec.stage == 'queued' then lib.commands_move(rec, { stage = 'admitted' }, { 'nodeId' }) end
end

-- Reads the link that a client is bound to, or nil: nodeId, instanceId, epoch, the revision of the actions that the
-- client advertises and, while the link is coming up, upTo and moved (see rebind.lua).
lib.commands_link = function(ch)
  return fact('link', ch, lib.commands_read_link) or nil
end
lib.commands_read_link = function(ch)
  local bound = get(key('client', ch), 'b')
  if not bound then return false end
  local nodeId, epoch, instanceId, rev, upTo, moved = string.match(bound, '^(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z$')
  return { nodeId = nodeId, instanceId = instanceId, epoch = epoch, rev = rev, upTo = given(upTo), moved = given(moved) }
end

lib.commands_bind_to = function(ch, link)
  local nul = '\0'
  local bound = link.nodeId .. nul .. link.epoch .. nul .. link.instanceId .. nul .. link.rev .. nul ..
    (link.upTo or '') .. nul .. (link.moved or '') .. nul
  set(key('client', ch), 'b', bound)
end

-- Reads the link that a client is bound to; nil if there is none, or its node is dead.
lib.commands_binding = function(ch)
  local link = lib.commands_link(ch)
  if link and lib.nodes_alive(link.nodeId) then return link end
  return nil
end

-- Lists live commands of a client as {id, place}, in the order of the queue. `wanted`: returns true for each stage to
-- list.
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

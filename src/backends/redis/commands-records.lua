-- How commands are stored: live and ended records, deadlines, spans of time and the newest commands; and the functions
-- that the acts of commands.lua share.

-- library: lib-commands
-- How live commands are stored, and the functions that all acts on commands share. See lib-record for records,
-- lib-ended for ended commands, lib-due for deadlines. A client's HASH has its live commands: `s<id>` the state,
-- `a<id>` the request, `p<id>` the params, `w<id>` the waiters; and of the client: `b` the link that it is bound
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

-- library: lib-record
-- Reads and writes the record of a command: in Redis one text, in Lua a table of texts. commands/record.ts reads and
-- writes the same text. It has two parts.
-- The state: rev (counts the writes), place (position in the client's queue), the fields of core's Command that
-- change (empty for null; error, firstLate and sightings as JSON), and fields of this backend: queuedOn (the node that
-- it was last queued on), markedBy (the attempt that dispatched it), resultIn (the span of its result; '-' if there was
-- no room for it), progressRows, progressRowAt, queuedBytes (its bytes in the share queued_bytes) and, once it has
-- ended, forgetAt.
-- The request: ch, uh, sh, sth (hashes of its client, user, scope and stream), then what the caller gave.
-- Each field is followed by a NUL, so no field contains one. In a table an absent field is false or nil. Nearly every
-- act reads and writes records, so the fields are written out here: a loop over their names costs several times as
-- much.
lib.commands_pattern = '^' .. string.rep('(%Z*)%z', 32) .. '$'
lib.commands_request_pattern = '^' .. string.rep('(%Z*)%z', 19) .. '$'
-- The fields of the request, and the metatable of a record whose request is not parsed yet: the first read of one of
-- these fields parses it.
lib.commands_later = {
  ch = true, uh = true, sh = true, sth = true, userId = true, clientId = true, commandId = true, action = true,
  digest = true, scopeId = true, namedInstanceId = true, traceId = true, parentSpanId = true, callerKind = true,
  callerName = true, traceFlags = true, traceState = true, clientType = true, callSpan = true,
}
lib.commands_lazy = {
  __index = function(rec, field)
    if not lib.commands_later[field] then return nil end
    return rawget(lib.commands_parse_request(rec), field)
  end,
}

-- Parses the request of a record into its fields.
lib.commands_parse_request = function(rec)
  setmetatable(rec, nil)
  local
    ch, uh, sh, sth, userId, clientId, commandId, action, digest, scopeId, namedInstanceId, traceId, parentSpanId,
    callerKind, callerName, traceFlags, traceState, clientType, callSpan
    = string.match(rec.request, lib.commands_request_pattern)
  rec.ch = ch ~= '' and ch; rec.uh = uh ~= '' and uh; rec.sh = sh ~= '' and sh; rec.sth = sth ~= '' and sth;
  rec.userId = userId ~= '' and userId; rec.clientId = clientId ~= '' and clientId;
  rec.commandId = commandId ~= '' and commandId; rec.action = action ~= '' and action;
  rec.digest = digest ~= '' and digest; rec.scopeId = scopeId ~= '' and scopeId;
  rec.namedInstanceId = namedInstanceId ~= '' and namedInstanceId; rec.traceId = traceId ~= '' and traceId;
  rec.parentSpanId = parentSpanId ~= '' and parentSpanId; rec.callerKind = callerKind ~= '' and callerKind;
  rec.callerName = callerName ~= '' and callerName; rec.traceFlags = traceFlags ~= '' and traceFlags;
  rec.traceState = traceState ~= '' and traceState; rec.clientType = clientType ~= '' and clientType;
  rec.callSpan = callSpan ~= '' and callSpan;
  return rec
end

-- Makes a record from the texts of its state and its request.
lib.commands_parse = function(state, request)
  local
    rev, admittedAt, place, version, stage, lastProvenStage, outcome, execution, terminalAt, attempts, lateResults,
    connectDeadline, deadline, expectedInstanceId, nodeId, queuedOn, recoveredFromNodeId, queuedAt, boundInstanceId,
    dispatchedAt, markedBy, acknowledgedAt, reason, error, cancelRequestedAt, forgetAt, sightings, firstLate,
    resultIn, progressRows, progressRowAt, queuedBytes
    = string.match(state, lib.commands_pattern)
  return setmetatable({
    state = state, request = request, whole = false, name = false, id = false, waits = false, span = false, unwritten = false,
    rev = rev ~= '' and rev, admittedAt = admittedAt ~= '' and admittedAt, place = place ~= '' and place,
    version = version ~= '' and version, stage = stage ~= '' and stage,
    lastProvenStage = lastProvenStage ~= '' and lastProvenStage, outcome = outcome ~= '' and outcome,
    execution = execution ~= '' and execution, terminalAt = terminalAt ~= '' and terminalAt,
    attempts = attempts ~= '' and attempts, lateResults = lateResults ~= '' and lateResults,
    connectDeadline = connectDeadline ~= '' and connectDeadline, deadline = deadline ~= '' and deadline,
    expectedInstanceId = expectedInstanceId ~= '' and expectedInstanceId, nodeId = nodeId ~= '' and nodeId,
    queuedOn = queuedOn ~= '' and queuedOn, recoveredFromNodeId = recoveredFromNodeId ~= '' and recoveredFromNodeId,
    queuedAt = queuedAt ~= '' and queuedAt, boundInstanceId = boundInstanceId ~= '' and boundInstanceId,
    dispatchedAt = dispatchedAt ~= '' and dispatchedAt, markedBy = markedBy ~= '' and markedBy,
    acknowledgedAt = acknowledgedAt ~= '' and acknowledgedAt, reason = reason ~= '' and reason,
    error = error ~= '' and error, cancelRequestedAt = cancelRequestedAt ~= '' and cancelRequestedAt,
    forgetAt = forgetAt ~= '' and forgetAt, sightings = sightings ~= '' and sightings,
    firstLate = firstLate ~= '' and firstLate, resultIn = resultIn ~= '' and resultIn,
    progressRows = progressRows ~= '' and progressRows, progressRowAt = progressRowAt ~= '' and progressRowAt,
    queuedBytes = queuedBytes ~= '' and queuedBytes,
  }, lib.commands_lazy)
end

-- Returns the state of a record as text.
lib.commands_state = function(rec)
  if rec.state then return rec.state end
  local nul = '\0'
  rec.state =
    (rec.rev or '') .. nul .. (rec.admittedAt or '') .. nul .. (rec.place or '') .. nul ..
    (rec.version or '') .. nul .. (rec.stage or '') .. nul .. (rec.lastProvenStage or '') .. nul ..
    (rec.outcome or '') .. nul .. (rec.execution or '') .. nul .. (rec.terminalAt or '') .. nul ..
    (rec.attempts or '') .. nul .. (rec.lateResults or '') .. nul .. (rec.connectDeadline or '') .. nul ..
    (rec.deadline or '') .. nul .. (rec.expectedInstanceId or '') .. nul .. (rec.nodeId or '') .. nul ..
    (rec.queuedOn or '') .. nul .. (rec.recoveredFromNodeId or '') .. nul .. (rec.queuedAt or '') .. nul ..
    (rec.boundInstanceId or '') .. nul .. (rec.dispatchedAt or '') .. nul .. (rec.markedBy or '') .. nul ..
    (rec.acknowledgedAt or '') .. nul .. (rec.reason or '') .. nul .. (rec.error or '') .. nul ..
    (rec.cancelRequestedAt or '') .. nul .. (rec.forgetAt or '') .. nul .. (rec.sightings or '') .. nul ..
    (rec.firstLate or '') .. nul .. (rec.resultIn or '') .. nul .. (rec.progressRows or '') .. nul ..
    (rec.progressRowAt or '') .. nul .. (rec.queuedBytes or '') .. nul
  return rec.state
end

-- Returns a record as text.
lib.commands_text = function(rec)
  if rec.whole then return rec.whole end
  rec.whole = lib.commands_state(rec) .. rec.request
  return rec.whole
end

-- Splits the text of a record into its state and its request.
lib.commands_split = function(whole)
  local at = string.match(whole, lib.commands_split_pattern)
  return string.sub(whole, 1, at - 1), string.sub(whole, at)
end
lib.commands_split_pattern = '^' .. string.rep('%Z*%z', 32) .. '()'

-- library: lib-admission
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

-- library: lib-mark
-- Marks commands as dispatched. The record then says that the command was dispatched, and to which instance. The
-- command is marked before its node writes it to the socket.
-- needs: lib-admission, lib-commands

-- Marks a command as dispatched. `by`: the bound instance, and the attempt with the epoch of its link, or nil.
lib.commands_mark = function(rec, by)
  lib.commands_count(rec.ch, -1)
  lib.commands_unqueue(rec)
  lib.commands_move(rec, {
    stage = 'dispatched',
    lastProvenStage = 'dispatched',
    execution = 'may_have_run',
    attempts = text(tonumber(rec.attempts) + 1),
    boundInstanceId = by.instance,
    dispatchedAt = text(now),
    markedBy = by.attempt,
  })
end

-- Says whether a command that is admitted now may be marked as dispatched at once. Its client must be bound to the link
-- of this node and epoch. No other command may wait for the client, so that the order of admission is kept. `epoch` is
-- '' if the node offers no link; then the answer is false.
lib.commands_markable = function(rec, binding, node, epoch)
  if not binding or binding.moved or binding.nodeId ~= node or binding.epoch ~= epoch then return false end
  return lib.admission_queued(rec) == 0 and tonumber(rec.deadline) > now
end

-- library: lib-due
-- Finds commands that are due. The reservations of a scope (`reserved`) are ordered by deadline, so they are also the
-- index of deadlines. `scopedue` says which scopes to search: it has the hash of each scope, ordered by a time that is
-- never later than the scope's earliest deadline. An admission lowers that time, and a search for due commands raises
-- it. An end leaves it as it is, so most calls write nothing here. `connectdue` has the commands that were never
-- queued, ordered by connect deadline. Each is named by its deadline (13 digits), its client's hash and its id.
-- needs: lib-commands

-- One search reads at most `limit` plus this many scopes. It raises the time of each scope without due commands, so the
-- next search reaches other scopes.
lib.due_scopes = 256
-- One search stops once it has found `limit` times this many commands.
lib.due_spare = 10

-- Returns the name that a command which was never queued has in `connectdue`.
lib.due_name = function(rec)
  return string.format('%013d', tonumber(rec.deadline)) .. rec.name
end

-- Adds a command to the indexes of deadlines when it is admitted.
lib.due_add = function(rec)
  lower(key('scopedue'), rec.deadline, rec.sh)
  if not rec.queuedAt then put(key('connectdue'), rec.connectDeadline, lib.due_name(rec)) end
end

-- Removes a command from `connectdue`, because its connect deadline no longer counts. Called when the command is queued
-- for the first time, or ends before that.
lib.due_connected = function(rec)
  drop(key('connectdue'), lib.due_name(rec))
end

-- Adds the due commands of a scope to `found`. If none is due, the scope is searched again at its earliest deadline.
lib.due_in_scope = function(sh, limit, found)
  local reserved = key('reserved', sh)
  local due = call('ZRANGEBYSCORE', reserved, '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do lib.due_found(found, due[i], due[i + 1]) end
  if #due > 0 then return end
  local first = call('ZRANGE', reserved, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', key('scopedue'), first[2], sh) else call('ZREM', key('scopedue'), sh) end
end

-- Adds the commands that are past their connect deadline to `found`.
lib.due_unconnected = function(limit, found)
  local due = call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do
    local rec = lib.commands_live(string.sub(due[i], 14, 35), string.sub(due[i], 36))
    if rec then lib.due_found(found, lib.commands_name(rec), due[i + 1])
    else call('ZREM', key('connectdue'), due[i]) end
  end
end

lib.due_found = function(found, name, since)
  if found.known[name] then return end
  found.known[name] = true
  found.list[#found.list + 1] = { since = tonumber(since), name = name }
end

-- Finds the commands past their connect deadline or deadline. Returns a list of names, the longest due first, each with
-- the time since when its command is due. The list has at least `limit` names if there are that many. The second result
-- says whether the same search would find more in other scopes.
lib.due_find = function(limit)
  local found, budget = { list = {}, known = {} }, limit + lib.due_scopes
  lib.due_unconnected(limit, found)
  local scopes = call('ZRANGEBYSCORE', key('scopedue'), '-inf', text(now), 'LIMIT', 0, budget)
  for _, sh in ipairs(scopes) do
    if #found.list >= limit * lib.due_spare then break end
    lib.due_in_scope(sh, limit, found)
  end
  table.sort(found.list, function(a, b) return a.since < b.since end)
  return found.list, #scopes == budget and #found.list < limit
end

-- Counts the commands that were never queued and are past their connect deadline, but not past their deadline.
lib.due_count_unconnected = function()
  local count = 0
  for _, member in ipairs(call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now))) do
    if tonumber(string.sub(member, 1, 13)) > now then count = count + 1 end
  end
  return count
end

-- library: lib-ended
-- Stores and reads ended commands. Their records and results are in keys by user and span of time (see lib-spans).
-- A span of records is half as long as the idempotency window. Each record says when it is forgotten. From then on it
-- is ignored, although it stays in Redis until its span is removed.
-- needs: lib-record, lib-shares, lib-spans
-- How much longer a result is kept than it is shown, ms. A row of a mailbox may still name it.
lib.ended_fetched = 60000
lib.ended_no_room = '-'

-- Returns the start of the current span of this length (ms), as text.
lib.ended_began = function(length)
  return text(now - now % length)
end

-- Returns the name of the span for the record of a command that ends now, and registers the span if it is new.
lib.ended_open = function(rec, window)
  local length = math.max(1000, math.floor(window / 2))
  local began = now - now % length
  local span = text(began) .. '.' .. text(window)
  lib.spans_open(rec, span, began + length + window)
  return span
end

-- Returns the key of the results of a user that were recorded in a span.
lib.ended_results = function(rec, span)
  return lib.spans_key(rec.uh, 'r' .. span)
end

-- Returns the span for the results of commands that end now, when it began, and when it is removed. Spans of results
-- have a length of their own, because results may be removed before records.
lib.ended_span_of_results = function(settings)
  local shown = math.min(settings.retentionMs, settings.terminalMs)
  local length = math.max(1000, math.floor(shown / 4))
  local began = lib.ended_began(length)
  return 'r' .. began, began, tonumber(began) + length + shown + lib.ended_fetched
end

-- Keeps the result of a command that ends now, and returns the result's span. Returns '-' if the user has no room for
-- the result in the share result_bytes.
lib.ended_result = function(rec, result, settings)
  if lib.shares_refusal(settings.shares.r, 'r', rec.uh, #result) then return lib.ended_no_room end
  local span, began, over = lib.ended_span_of_results(settings)
  lib.spans_open(rec, span, over)
  set(lib.ended_results(rec, began), rec.name, result)
  lib.shares_take('r', rec.uh, #result, span)
  return began
end

-- Reads the recorded result of a command; false if there is none, or it was recorded `retentionMs` ago or longer.
lib.commands_result = function(rec, retentionMs)
  if rec.stage ~= 'terminal' or not rec.resultIn or rec.resultIn == lib.ended_no_room then return false end
  if tonumber(rec.terminalAt) + tonumber(retentionMs) <= now then return false end
  return get(lib.ended_results(rec, rec.resultIn), rec.name)
end

-- Reads the record of an ended command; nil if there is none, or it is due to be forgotten.
lib.ended_read = function(uh, name)
  for _, span in ipairs(lib.spans_of(uh).ended) do
    local whole = get(lib.spans_key(uh, span), name)
    local rec = whole and lib.commands_parse(lib.commands_split(whole))
    if rec and tonumber(rec.forgetAt) > now then
      rec.span = span
      return rec
    end
  end
  return nil
end

-- Stores the record of a command that ends now among the ended commands.
lib.ended_add = function(rec, window)
  rec.span = lib.ended_open(rec, window)
  -- If no node ran for a while, a command may end so late that its name is removed before its record. It then gets a
  -- second name.
  if now > tonumber(rec.admittedAt) + lib.spans_life then lib.spans_name(rec, window) end
  local second = text(math.floor(tonumber(rec.forgetAt) / 1000))
  if not grouping then return call('HINCRBY', key('endedcount'), second, 1) end
  local counted = fact('ended', second, lib.ended_counted)
  counted.count = counted.count + 1
end

-- Begins the count of the commands that end in this call and are to be forgotten in the same second.
lib.ended_counted = function(second)
  local counted = { count = 0 }
  atEnd(function() call('HINCRBY', key('endedcount'), second, counted.count) end)
  return counted
end

-- Counts the ended commands whose records are not forgotten yet. The count is exact to the second.
lib.ended_count = function()
  local flat, count, second = call('HGETALL', key('endedcount')), 0, math.floor(now / 1000)
  for i = 1, #flat, 2 do
    if tonumber(flat[i]) > second then count = count + tonumber(flat[i + 1]) end
  end
  return count
end

-- Removes the counts of records that were to be forgotten in past seconds.
lib.ended_sweep_counts = function()
  local second, swept = math.floor(now / 1000), tonumber(call('HGET', KEYS[1], 'counted') or 0)
  if swept >= second then return end
  if call('EXISTS', key('endedcount')) == 1 then
    local past = {}
    for _, field in ipairs(call('HKEYS', key('endedcount'))) do
      if tonumber(field) <= second then past[#past + 1] = field end
    end
    for i = 1, #past, 1000 do call('HDEL', key('endedcount'), unpack(past, i, math.min(#past, i + 999))) end
  end
  call('HSET', KEYS[1], 'counted', text(second))
end

-- Removes at most `limit` spans whose time is over. Returns true if there are more.
lib.ended_sweep = function(limit)
  lib.ended_sweep_counts()
  return lib.spans_sweep(limit)
end

-- library: lib-spans
-- Spans of time. The records, names and results of a user's commands are in keys. Each key holds one span of time and
-- is removed as a whole. `spans:<user's hash>` has the spans of a user, by when they are removed; `endedspans` has
-- those of all users. The name of a span says what its key holds and when the span began: `<began>.<window>` records of
-- commands that ended in it; `n<began>.<window>` names of commands that were admitted in it; `r<began>` results of
-- commands that ended in it. `window` is the idempotency window of those records: records with different windows never
-- share a span.
-- needs: lib-shares
lib.spans_grace = 3600000
-- The longest time between a command's admission and its end, ms: the longest connect budget, the longest answer
-- budget, and a minute for the node that ends it.
lib.spans_life = 660000

-- Reads the spans of a user, ordered by time of removal, the latest first. `ended`: a list of the spans of records;
-- `named`: a list of the spans of names; `known`: a set of all spans.
lib.spans_of = function(uh)
  return fact('spans', uh, lib.spans_read)
end
lib.spans_read = function(uh)
  local spans = { ended = {}, named = {}, known = {} }
  for _, name in ipairs(call('ZREVRANGE', key('spans', uh), 0, -1)) do
    lib.spans_list(spans, name, -1)
    spans.known[name] = true
  end
  return spans
end

-- Adds a span to the list of its kind: at the front if `at` is 1, else at the end.
lib.spans_list = function(spans, name, at)
  local lists = { [''] = spans.ended, n = spans.named }
  local list = lists[string.match(name, '^%l?')]
  if list then table.insert(list, at == 1 and 1 or #list + 1, name) end
end

-- Returns the key that holds a user's span. `spans_parts` has the parts of the names that this call has used.
lib.spans_parts = {}
lib.spans_key = function(uh, name)
  local of = lib.spans_parts[name]
  if not of then
    local letter = string.match(name, '^%l')
    of = { kind = ({ n = 'names', r = 'results' })[letter] or 'ended', began = letter and string.sub(name, 2) or name }
    lib.spans_parts[name] = of
  end
  return key(of.kind, uh, of.began)
end

-- Registers a span of a user, to be removed at the time `over`. Returns false if it was registered before.
lib.spans_open = function(user, name, over)
  local spans = lib.spans_of(user.uh)
  if spans.known[name] then return false end
  call('ZADD', key('spans', user.uh), text(over), name)
  call('ZADD', key('endedspans'), text(over), user.uh .. '\0' .. name .. '\0' .. user.userId)
  put(key('cmdusers'), '0', user.userId .. '\0' .. user.uh)
  -- Results are removed on time. The other keys are removed by the sweep, and expire only if no node runs any more.
  expire(lib.spans_key(user.uh, name), over - now + (string.match(name, '^r') and 0 or lib.spans_grace))
  lib.spans_list(spans, name, 1)
  spans.known[name] = true
  return true
end

-- Removes at most `limit` spans whose time is over. Returns true if there are more.
lib.spans_sweep = function(limit)
  local over = call('ZRANGEBYSCORE', key('endedspans'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  for i = 1, math.min(limit, #over) do
    local uh, name, userId = string.match(over[i], '^(%Z*)%z(%Z*)%z(.*)$')
    call('UNLINK', lib.spans_key(uh, name))
    local counted = ({ n = 'm', r = 'r' })[string.match(name, '^%l?')]
    if counted then lib.shares_return(counted, uh, name) end
    call('ZREM', key('spans', uh), name)
    call('ZREM', key('endedspans'), over[i])
    if call('EXISTS', key('spans', uh)) == 0 then call('ZREM', key('cmdusers'), userId .. '\0' .. uh) end
  end
  return #over > limit
end

-- Returns the span for the names of commands that are admitted now, and when it is removed. A span never crosses an
-- hour.
lib.spans_of_names = function(window)
  local hour, length = now - now % 3600000, math.min(3600000, math.max(60000, math.floor(window / 2)))
  local began = hour + math.floor((now - hour) / length) * length
  return 'n' .. text(began) .. '.' .. text(window), began + length + lib.spans_life + window
end

-- Adds the name of a command to the listings by name. The name stays until its span is removed, so that the end of a
-- command need not remove it. Returns whether the span is new, and then the span.
lib.spans_name = function(rec, window)
  local name, over = lib.spans_of_names(window)
  local first = lib.spans_open(rec, name, over)
  put(lib.spans_key(rec.uh, name), '0', rec.clientId .. '\0' .. rec.commandId)
  return first, name
end

-- library: lib-newest
-- The index of commands by time of admission: each hour has a ZSET of the commands that were admitted in it. Admissions
-- remove the names of commands that are gone, and the key of each hour expires.
-- needs: lib-spans
lib.newest_hour = 3600000
-- The most old names that one admission removes. An admission removes names only if its time in milliseconds is a
-- multiple of `newest_turn`.
lib.newest_trim = 1000
lib.newest_turn = 64

-- Returns the start of the hour that a time (ms) is in, as text.
lib.newest_of = function(at)
  return text(at - at % lib.newest_hour)
end

lib.newest_key = function(at)
  return key('admitted', lib.newest_of(at))
end

-- Removes names whose commands are certainly gone.
lib.newest_drop = function(kept)
  local before = now - lib.spans_life - kept
  local name = lib.newest_key(before)
  local gone = math.min(call('ZCOUNT', name, '-inf', text(before)), lib.newest_trim)
  if gone > 0 then call('ZREMRANGEBYRANK', name, 0, gone - 1) end
end

-- Adds a command that is admitted now to the index. `window`: how long an ended command's record is kept, ms. `first`:
-- whether the command may be the first one of its hour.
lib.newest_add = function(rec, window, first)
  local name = lib.newest_key(now)
  if first and call('EXISTS', name) == 0 then
    expire(name, lib.newest_hour - now % lib.newest_hour + lib.spans_life + window)
  end
  put(name, rec.admittedAt, rec.uh .. rec.ch .. rec.id)
  fact('trimmed', name, lib.newest_trim_now, window)
end

lib.newest_trim_now = function(_, window)
  if now % lib.newest_turn == 0 then lib.newest_drop(window) end
  return true
end

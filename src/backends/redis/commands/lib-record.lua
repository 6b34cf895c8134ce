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

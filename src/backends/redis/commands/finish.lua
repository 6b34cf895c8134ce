-- Records the end that a client reported, once and from the bound instance only. Any other report is counted, or kept
-- as evidence.
-- a: 1 client's hash, 2 instance, 3 'result', 'error' or 'cancelled', 4 payload; 5 payload for history, 6 its spill
--    (JSON), 7 the spill's bytes; 8 error (JSON), 9 '1' if the client refused; 10 id of the message, 11 hash of its
--    mark, 12 a random text that a repetition of this call passes again (see dedup_see); 13 digest of the end, 14 the
--    most sightings that are kept, 15 settings, 16 command, 17 user's hash.
-- Returns {'finished' | 'duplicate' | 'late' | 'fenced', record}, or {'unknown'}.
-- class: allow_oom
-- needs: lib-commands, lib-dedup, lib-record
-- grouped: yes
lib.commands_outcomes = { result = 'completed', error = 'failed', cancelled = 'cancelled' }
lib.commands_row_kinds = { result = 'result', error = 'error', cancelled = 'cancel' }

lib.commands_sightings = function(rec)
  return rec.sightings and cjson.decode(rec.sightings) or {}
end

-- Returns sightings as JSON, in the form that commands-end writes too. Ids need no escape.
lib.commands_sightings_text = function(sightings)
  local texts = {}
  for i, sighting in ipairs(sightings) do
    texts[i] = '{"messageId":"' .. sighting.messageId .. '","firstSeenAt":' .. text(sighting.firstSeenAt) ..
      ',"lastSeenAt":' .. text(sighting.lastSeenAt) .. ',"count":' .. text(sighting.count) .. '}'
  end
  return '[' .. table.concat(texts, ',') .. ']'
end

lib.commands_see = function(sightings, messageId, most)
  if #sightings < most then
    sightings[#sightings + 1] = { messageId = messageId, firstSeenAt = now, lastSeenAt = now, count = 1 }
  end
  return lib.commands_sightings_text(sightings)
end

-- Keeps an end that came too late, or from another instance, as evidence. The record describes the first such end.
-- History gets a row for each such end, until the record has the most sightings.
lib.commands_late = function(rec, sightings, a)
  if #sightings < tonumber(a[14]) then
    lib.commands_retain(rec, {
      id = a[10] .. ':late', kind = 'late_result', instanceId = a[2],
      payload = given(a[5]), spill = given(a[6]), bytes = given(a[7]), error = given(a[8]),
    })
  end
  local late = { at = now, instanceId = a[2], kind = a[3], digest = a[13] }
  lib.commands_move(rec, {
    lateResults = text(tonumber(rec.lateResults) + 1),
    firstLate = rec.firstLate or cjson.encode(late),
    sightings = lib.commands_see(sightings, a[10], tonumber(a[14])),
  })
end

lib.commands_reported = function(rec, sightings, a)
  lib.commands_retain(rec, {
    id = a[10], kind = lib.commands_row_kinds[a[3]],
    payload = given(a[5]), spill = given(a[6]), bytes = given(a[7]), error = given(a[8]),
  })
  local problem = given(a[8])
  lib.commands_conclude(rec, {
    outcome = lib.commands_outcomes[a[3]],
    execution = a[9] == '1' and 'refused_by_client' or 'reported_by_client',
    error = problem,
    -- A request to cancel is no reason any more once the client has reported how the command ended.
    reason = problem and cjson.decode(problem).code or false,
    sightings = lib.commands_see(sightings, a[10], tonumber(a[14])),
  }, given(a[4]), true)
end

reads['commands-finish'] = function(a)
  lib.commands_want(a[1], a[16])
end

acts['commands-finish'] = function(a)
  lib.commands_use(a[15])
  local rec = lib.commands_load(a[1], a[16], a[17])
  if not rec then return { 'unknown' } end
  local sightings = lib.commands_sightings(rec)
  for _, sighting in ipairs(sightings) do
    if sighting.messageId == a[10] then
      lib.dedup_again(a[11], a[12], sighting.firstSeenAt)
      sighting.lastSeenAt, sighting.count = now, sighting.count + 1
      lib.commands_move(rec, { sightings = lib.commands_sightings_text(sightings) })
      return { 'duplicate', lib.commands_text(rec) }
    end
  end
  lib.dedup_see(a[11], a[12])
  if rec.stage == 'terminal' or rec.boundInstanceId ~= a[2] then
    lib.commands_late(rec, sightings, a)
    return { rec.stage == 'terminal' and 'late' or 'fenced', lib.commands_text(rec) }
  end
  lib.commands_reported(rec, sightings, a)
  return { 'finished', lib.commands_text(rec) }
end

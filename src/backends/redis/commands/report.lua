-- Records an acknowledgement or progress that the bound instance reported.
-- a: 1 client's hash, 2 instance, 3 'ack' or 'progress', 4 '1' to keep a history row, 5 its payload, 6 its spill
--    (JSON), 7 the spill's bytes, 8 least time between two rows (ms), 9 settings, 10 command, 11 user's hash.
-- Returns {'recorded', record}, or {'ignored', record}: the record is false if there is none.
-- class: allow_oom
-- needs: lib-commands, lib-record, lib-waiters
-- grouped: yes
lib.commands_progress = function(rec, a)
  if rec.progressRowAt and now - tonumber(rec.progressRowAt) < tonumber(a[8]) then return end
  local rows = text(tonumber(rec.progressRows or 0) + 1)
  lib.commands_note(rec, { progressRows = rows, progressRowAt = text(now) })
  local id = rec.commandId .. ':progress:' .. rows
  lib.commands_retain(rec, { id = id, kind = 'progress', payload = given(a[5]), spill = given(a[6]), bytes = given(a[7]) })
end

reads['commands-report'] = function(a)
  lib.commands_want(a[1], a[10])
end

acts['commands-report'] = function(a)
  lib.commands_use(a[9])
  local rec = lib.commands_load(a[1], a[10], a[11])
  if not rec then return { 'ignored', false } end
  if rec.stage == 'terminal' or rec.boundInstanceId ~= a[2] then return { 'ignored', lib.commands_text(rec) } end
  if rec.stage == 'dispatched' then
    lib.commands_move(rec, { stage = 'acknowledged', lastProvenStage = 'acknowledged', acknowledgedAt = text(now) })
    lib.waiters_reply(rec)
  elseif a[3] == 'ack' then return { 'ignored', lib.commands_text(rec) } end
  if a[3] == 'progress' and a[4] == '1' then lib.commands_progress(rec, a) end
  return { 'recorded', lib.commands_text(rec) }
end

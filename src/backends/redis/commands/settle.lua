-- Ends commands without a report of their client, and records requests to cancel.
-- a: 1 client's hash, 2 command, 3 user's hash; 4 'cancel', 'expire' or 'give_up'; 5 settings;
--    of cancel: 6 who requested it, 7 '1' if there is a reason, 8 the reason; of give_up: 6 code, 7 instance that it
--    must be bound to or, before its dispatch, wait for; '' for any.
-- Returns {'settled' | 'requested' | 'unchanged', record}, or {'unknown'}.
-- class: allow_oom
-- needs: lib-commands, lib-record
lib.commands_due_code = function(rec)
  local late = now >= tonumber(rec.deadline)
  if rec.dispatchedAt then return late and 'response_timeout' or nil end
  if not rec.queuedAt then return now >= tonumber(rec.connectDeadline) and 'connect_timeout' or nil end
  return late and 'queue_timeout' or nil
end

lib.commands_give_up_code = function(rec, code, instance)
  if not instance or instance == (rec.boundInstanceId or rec.expectedInstanceId) then return code end
  return nil
end

lib.commands_cancel = function(rec, by, reason)
  local first = not rec.cancelRequestedAt
  if first then
    local problem = reason and cjson.encode({ code = 'cancelled', message = reason })
    lib.commands_retain(rec, { id = rec.commandId .. ':cancel', kind = 'cancel', error = problem })
  end
  local at = rec.cancelRequestedAt or text(now)
  if not rec.dispatchedAt then
    lib.commands_conclude(rec, {
      outcome = 'cancelled', execution = 'not_written', reason = 'cancelled by ' .. by, cancelRequestedAt = at,
    })
    return { 'settled', lib.commands_text(rec) }
  end
  if first then lib.commands_move(rec, { cancelRequestedAt = at, reason = 'cancel requested by ' .. by }) end
  if rec.nodeId then lib.commands_post(rec, rec.nodeId, 'cancel', reason) end
  return { 'requested', lib.commands_text(rec) }
end

acts['commands-settle'] = function(a)
  lib.commands_use(a[5])
  local rec = lib.commands_load(a[1], a[2], a[3])
  if not rec then return { 'unknown' } end
  if rec.stage == 'terminal' then return { 'unchanged', lib.commands_text(rec) } end
  if a[4] == 'cancel' then return lib.commands_cancel(rec, a[6], a[7] == '1' and a[8] or nil) end
  local code
  if a[4] == 'expire' then code = lib.commands_due_code(rec) else code = lib.commands_give_up_code(rec, a[6], given(a[7])) end
  if not code then return { 'unchanged', lib.commands_text(rec) } end
  lib.commands_end(rec, code)
  return { 'settled', lib.commands_text(rec) }
end

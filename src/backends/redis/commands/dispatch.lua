-- The mark before a socket write: at most once for a command, and only for the link that its client is bound to. Whoever set it and was
-- not answered is answered again: nothing was written, since a write needs the answer.
-- a: 1 command's hash, 2 node, 3 epoch of the link, 4 instance, 5 name of the attempt among those of the link or '',
--    6 client's hash.
-- Returns {'dispatch', record, params, ms left}, or {'skip'}.
-- class: allow_oom
-- needs: lib-commands, lib-record
-- grouped: yes
acts['commands-dispatch'] = function(a)
  local rec, ch = lib.commands_load(a[1]), a[6]
  if not rec or now >= tonumber(rec.deadline) then return { 'skip' } end
  local attempt = a[5] ~= '' and a[3] .. ':' .. a[5] or nil
  local again = attempt and rec.markedBy == attempt and rec.stage == 'dispatched'
  if rec.stage ~= 'queued' and not again then return { 'skip' } end
  local bound = fact('bound:' .. ch, function() return call('HMGET', key('binding', ch), 'nodeId', 'epoch') end)
  if bound[1] ~= a[2] or tonumber(bound[2]) ~= tonumber(a[3]) then return { 'skip' } end
  if not again then lib.commands_mark(rec, ch, { instance = a[4], attempt = attempt }) end
  return { 'dispatch', lib.commands_text(rec), call('GET', key('params', rec.kh)), text(tonumber(rec.deadline) - now) }
end

lib.commands_mark = function(rec, ch, by)
  lib.commands_move(rec, {
    stage = 'dispatched',
    lastProvenStage = 'dispatched',
    execution = 'may_have_run',
    attempts = text(tonumber(rec.attempts) + 1),
    boundInstanceId = by.instance,
    dispatchedAt = text(now),
    markedBy = by.attempt,
  })
  local running = key('running', ch)
  drop(key('waiting', ch), rec.kh)
  put(running, lib.commands_last(running), rec.kh)
end

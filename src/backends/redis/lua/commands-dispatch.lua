-- The mark before a socket write: at most once for a command, and only for the link that its client is bound to.
-- a: 1 command's hash, 2 node, 3 epoch of the link, 4 instance.
-- Returns {'dispatch', record, params, ms left}, or {'skip'}.
-- class: settle
acts['commands-dispatch'] = function(a)
  local rec = lib.commands_load(a[1])
  if not rec or rec.stage ~= 'queued' or now >= tonumber(rec.deadline) then return { 'skip' } end
  local bound = call('HMGET', key('binding', rec.ch), 'nodeId', 'epoch')
  if bound[1] ~= a[2] or tonumber(bound[2]) ~= tonumber(a[3]) then return { 'skip' } end
  local params = call('GET', key('params', rec.kh))
  lib.commands_move(rec, {
    stage = 'dispatched',
    lastProvenStage = 'dispatched',
    execution = 'may_have_run',
    attempts = text(tonumber(rec.attempts) + 1),
    boundInstanceId = a[4],
    dispatchedAt = text(now),
  })
  call('ZREM', key('waiting', rec.ch), rec.kh)
  call('ZADD', key('running', rec.ch), lib.commands_last(key('running', rec.ch)), rec.kh)
  call('UNLINK', key('params', rec.kh))
  return { 'dispatch', flat(rec), params, text(tonumber(rec.deadline) - now) }
end

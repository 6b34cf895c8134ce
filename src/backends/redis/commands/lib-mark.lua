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

-- Counts of commands that no scope's reservations tell.
-- Returns {now, ended commands with a record, commands that are due and not past their deadline}.
-- class: allow_oom
-- needs: lib-due, lib-ended
acts['inspector-summary'] = function()
  lib.ended_sweep(32)
  return { text(now), text(lib.ended_count()), text(lib.due_count_unconnected()) }
end

-- Counts the commands that the reservations of scopes do not show.
-- Returns {now, ended commands with a record, commands past their connect deadline but not past their deadline}.
-- class: allow_oom
-- needs: lib-due, lib-ended
acts['inspector-summary'] = function()
  lib.ended_sweep(32)
  return { text(now), text(lib.ended_count()), text(lib.due_count_unconnected()) }
end

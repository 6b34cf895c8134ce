-- Reads the recorded result of a command. a: 1 its client's hash, 2 its id, 3 its user's hash, 4 how long results are
-- shown, ms. Returns the text, or false if there is none or it is no longer shown.
-- class: allow_oom
-- needs: lib-commands, lib-ended
-- grouped: yes
acts['commands-result'] = function(a)
  local rec = lib.commands_load(a[1], a[2], a[3])
  return rec and lib.commands_result(rec, a[4]) or false
end

-- The recorded result of a command. a: 1 its hash, 2 how long results are shown, ms. Returns the text, or false.
-- class: allow_oom
-- needs: lib-commands
-- grouped: yes
acts['commands-result'] = function(a)
  local rec = lib.commands_load(a[1])
  return rec and lib.commands_result(rec, a[2]) or false
end

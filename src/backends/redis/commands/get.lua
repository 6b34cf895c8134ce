-- Records of commands. a: their hashes. Returns {now, then for each a record; false where there is none}.
-- class: allow_oom
-- needs: lib-commands, lib-record
-- grouped: yes
acts['commands-get'] = function(a)
  local found = { text(now) }
  for i, kh in ipairs(a) do
    local rec = lib.commands_load(kh)
    found[i + 1] = rec and lib.commands_text(rec) or false
  end
  return found
end

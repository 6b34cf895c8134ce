-- Reads the records of commands. a: for each command its client's hash, its id and its user's hash. Returns {now, then
-- for each the record, or false if there is none}.
-- class: allow_oom
-- needs: lib-commands, lib-record
-- grouped: yes
-- rows: 3
reads['commands-get'] = function(a)
  for i = 1, #a, 3 do lib.commands_want(a[i], a[i + 1], a[i + 2]) end
end

acts['commands-get'] = function(a)
  local found = { text(now) }
  for i = 1, #a, 3 do
    local rec = lib.commands_load(a[i], a[i + 1], a[i + 2])
    found[#found + 1] = rec and lib.commands_text(rec) or false
  end
  return found
end

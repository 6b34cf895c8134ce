-- Records of commands. a: their hashes. Returns {now, then for each a record; false where there is none}.
-- class: settle
grouped['commands-get'] = true
acts['commands-get'] = function(a)
  local found = { text(now) }
  for i, kh in ipairs(a) do
    local rec = lib.commands_load(kh)
    found[i + 1] = rec and lib.commands_text(rec) or false
  end
  return found
end

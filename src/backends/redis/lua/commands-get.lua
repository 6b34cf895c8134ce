-- Records of commands. a: their hashes. Returns a record for each; false where there is none.
-- class: settle
grouped['commands-get'] = true
acts['commands-get'] = function(a)
  local found = {}
  for i, kh in ipairs(a) do
    local rec = lib.commands_load(kh)
    found[i] = rec and lib.commands_text(rec) or false
  end
  return found
end

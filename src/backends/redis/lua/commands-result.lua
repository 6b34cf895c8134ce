-- The recorded result of a command. a: 1 its hash. Returns the text, or false.
-- class: settle
grouped['commands-result'] = true
acts['commands-result'] = function(a)
  local rec = lib.commands_load(a[1])
  return rec and call('GET', key('result', rec.kh)) or false
end

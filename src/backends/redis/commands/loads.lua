-- Counts the live commands of clients. a: the hash of each client. Returns, for each, how many were dispatched and how
-- many were not.
-- class: allow_oom
acts['commands-loads'] = function(a)
  local found = {}
  for _, ch in ipairs(a) do
    local name, live = key('client', ch), 0
    for _, field in ipairs(call('HKEYS', name)) do
      if string.byte(field) == 115 then live = live + 1 end
    end
    local waiting = tonumber(get(name, 'n') or 0)
    found[#found + 1] = live - waiting
    found[#found + 1] = waiting
  end
  return found
end

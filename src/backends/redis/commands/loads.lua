-- Counts the live commands of clients. a: the hash of each client. Returns, for each, how many were dispatched and how
-- many were not. Ends early once the call has read `loads_most` fields, so there may be fewer pairs than clients: call
-- again for the others.
-- class: allow_oom

-- The most fields that one call reads, give or take those of one client (four of each live command).
lib.loads_most = 10000
lib.loads_left = lib.loads_most

acts['commands-loads'] = function(a)
  local found = {}
  for _, ch in ipairs(a) do
    if lib.loads_left <= 0 then break end
    local name, live = key('client', ch), 0
    local fields = call('HKEYS', name)
    lib.loads_left = lib.loads_left - #fields
    for _, field in ipairs(fields) do
      if string.byte(field) == 115 then live = live + 1 end
    end
    local waiting = tonumber(get(name, 'n') or 0)
    found[#found + 1] = live - waiting
    found[#found + 1] = waiting
  end
  return found
end

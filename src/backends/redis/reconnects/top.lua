-- Finds the clients of this partition that reconnected most in the last hour. Looks only at the clients that
-- reconnected most in each slot of time.
-- a: 1 how many clients of each slot to read, 2 the most clients of a slot.
-- Returns {'1' if all clients were read, else ''; then in turn each client (user NUL client) and how often it
-- reconnected}, in no particular order.
-- class: allow_oom
-- needs: lib-reconnects
acts['reconnects-top'] = function(a)
  local most, found, known, complete = tonumber(a[1]), { '1' }, {}, true
  for _, name in ipairs(lib.reconnects_keys()) do
    if call('ZCOUNT', name, '(0', '+inf') > most or call('ZCARD', name) >= tonumber(a[2]) then complete = false end
    local rows = call('ZREVRANGE', name, 0, most - 1, 'WITHSCORES')
    for i = 1, #rows, 2 do
      if tonumber(rows[i + 1]) > 0 and not known[rows[i]] then
        known[rows[i]] = true
        found[#found + 1] = rows[i]
        found[#found + 1] = (lib.reconnects_count(rows[i]))
      end
    end
  end
  if not complete then found[1] = '' end
  return found
end

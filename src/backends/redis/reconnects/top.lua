-- Finds the clients of this partition that reconnected most in one slot of time, and how often they reconnected in the
-- last hour.
-- a: 1 how many clients to read, 2 the most clients of a slot, 3 the slot: 1 for the current one, 2 for the one before.
-- Returns {'1' if all clients were read, else ''; then in turn each client (user NUL client) and how often it
-- reconnected}, in no particular order.
-- class: allow_oom
-- needs: lib-reconnects
-- rows: all
acts['reconnects-top'] = function(a)
  local most, found, name = tonumber(a[1]), { '1' }, lib.reconnects_keys()[tonumber(a[3])]
  if call('ZCOUNT', name, '(0', '+inf') > most or call('ZCARD', name) >= tonumber(a[2]) then found[1] = '' end
  local rows = call('ZREVRANGE', name, 0, most - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    if tonumber(rows[i + 1]) > 0 then
      found[#found + 1] = rows[i]
      found[#found + 1] = (lib.reconnects_count(rows[i]))
    end
  end
  return found
end

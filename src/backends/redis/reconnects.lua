-- How often clients connect again.

-- library: lib-reconnects
-- Counts how often clients reconnect. Each slot of time has a ZSET: its members are clients, and the score of a client
-- is how often its link opened again in the slot (0: it opened once, as far as is known). The key expires when the slot
-- is over an hour old. The two numbers below are RECONNECT_SLOT_MS and RECONNECT_SLOTS of limits.ts.
lib.reconnects_slot = 300000
lib.reconnects_slots = 12

-- Returns the keys of the slots of the last hour, the current one first.
lib.reconnects_keys = function()
  local found, began = {}, now - now % lib.reconnects_slot
  for i = 0, lib.reconnects_slots - 1 do found[#found + 1] = key('reconnects', text(began - i * lib.reconnects_slot)) end
  return found
end

-- Returns how often a client reconnected in the last hour, and whether any slot has the client.
lib.reconnects_count = function(member)
  local total, known = 0, false
  for _, name in ipairs(lib.reconnects_keys()) do
    local score = call('ZSCORE', name, member)
    if score then
      total = total + tonumber(score)
      known = true
    end
  end
  return total, known
end

-- act: counts
-- Counts how often clients reconnected in the last hour. a: for each client its user and its id. Returns a number for
-- each.
-- class: allow_oom
-- needs: lib-reconnects
acts['reconnects-counts'] = function(a)
  local found = {}
  for i = 1, #a, 2 do found[#found + 1] = (lib.reconnects_count(a[i] .. '\0' .. a[i + 1])) end
  return found
end

-- act: note
-- Counts that a link of a client opened, unless the slot has no room for a further client.
-- a: 1 user, 2 client; 3 '1' if it had a connection before; 4 the most clients of a slot.
-- Returns nothing.
-- class: grow
-- needs: lib-reconnects
acts['reconnects-note'] = function(a)
  local member, name = a[1] .. '\0' .. a[2], lib.reconnects_keys()[1]
  local _, known = lib.reconnects_count(member)
  local score = call('ZSCORE', name, member)
  if not score and call('ZCARD', name) >= tonumber(a[4]) then return false end
  local by = (a[3] == '1' or known) and 1 or 0
  call('ZADD', name, text(tonumber(score or 0) + by), member)
  call('PEXPIRE', name, (lib.reconnects_slots + 1) * lib.reconnects_slot)
  return false
end

-- act: top
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

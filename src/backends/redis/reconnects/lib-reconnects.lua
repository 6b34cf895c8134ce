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

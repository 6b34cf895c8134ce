-- Removes expired payloads, and checks whether a new one fits. Payloads are here if they are too large for history.
-- Each is a STRING `<expiry> <text>`. The ZSET `payloads` has them as `<name>:<bytes>` by expiry, and `payloadbytes` is
-- the sum of their bytes.

-- Removes a payload, and subtracts its bytes if it existed. Returns true if it existed.
lib.spill_remove = function(name, bytes)
  call('UNLINK', key('payload', name))
  if call('ZREM', key('payloads'), name .. ':' .. bytes) == 0 then return false end
  if call('DECRBY', key('payloadbytes'), bytes) <= 0 then call('DEL', key('payloadbytes')) end
  return true
end

-- Removes at most `count` payloads that have expired. Returns how many it removed.
lib.spill_sweep = function(count)
  local due = call('ZRANGEBYSCORE', key('payloads'), '-inf', text(now), 'LIMIT', 0, count)
  for _, member in ipairs(due) do lib.spill_remove(string.match(member, '^(.*):(%d+)$')) end
  return #due
end

lib.spill_fits = function(bytes, most)
  return tonumber(call('GET', key('payloadbytes')) or 0) + bytes <= most
end

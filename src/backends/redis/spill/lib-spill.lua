-- Payloads too large for history: each a STRING `<expiry> <text>`; `payloads` has them as `<name>:<bytes>` by their expiry, and
-- `payloadbytes` counts what they take.

-- Removes one; its bytes are counted down only where it was there. True when it was.
lib.spill_remove = function(name, bytes)
  call('UNLINK', key('payload', name))
  if call('ZREM', key('payloads'), name .. ':' .. bytes) == 0 then return false end
  if call('DECRBY', key('payloadbytes'), bytes) <= 0 then call('DEL', key('payloadbytes')) end
  return true
end

-- Removes at most so many that are past; how many it were.
lib.spill_sweep = function(count)
  local due = call('ZRANGEBYSCORE', key('payloads'), '-inf', text(now), 'LIMIT', 0, count)
  for _, member in ipairs(due) do lib.spill_remove(string.match(member, '^(.*):(%d+)$')) end
  return #due
end

lib.spill_fits = function(bytes, most)
  return tonumber(call('GET', key('payloadbytes')) or 0) + bytes <= most
end

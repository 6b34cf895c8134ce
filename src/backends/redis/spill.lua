-- Payloads that are too large for history, in deployments whose nodes share no directory.

-- library: lib-spill
-- Removes expired payloads, and checks whether a new one fits. Each payload is a STRING `<expiry> <text>`. The ZSET
-- `payloads` contains `<name>:<bytes>` of each, scored by expiry; `payloadbytes` is the sum of their bytes.

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

-- act: clean
-- Removes payloads that have expired. a: 1 the most payloads. Returns how many it removed.
-- class: allow_oom
-- needs: lib-spill
acts['spill-clean'] = function(a)
  return lib.spill_sweep(tonumber(a[1]))
end

-- act: discard
-- Removes a payload that is not needed. a: 1 name; 2 bytes. Returns nothing.
-- class: allow_oom
-- needs: lib-spill
acts['spill-discard'] = function(a)
  lib.spill_remove(a[1], a[2])
end

-- act: fits
-- Says whether a payload would be kept. a: 1 its bytes; 2 the most bytes of all payloads. Returns 1, or 0 if there may
-- be no room.
-- class: grow
-- needs: lib-spill
acts['spill-fits'] = function(a)
  return lib.spill_fits(tonumber(a[1]), tonumber(a[2])) and 1 or 0
end

-- act: put
-- Stores a payload. a: 1 name; 2 expiry; 3 bytes; 4 the most bytes of all payloads; 5 text. Returns 1, or 0 if there is
-- no room.
-- class: grow
-- needs: lib-spill
acts['spill-put'] = function(a)
  local name, bytes = key('payload', a[1]), tonumber(a[3])
  if call('EXISTS', name) == 1 then return 1 end
  lib.spill_sweep(8)
  if not lib.spill_fits(bytes, tonumber(a[4])) then lib.spill_sweep(500) end
  if not lib.spill_fits(bytes, tonumber(a[4])) then return 0 end
  -- A payload is not read after its expiry. Its key expires an hour later, in case no node removes it.
  call('SET', name, a[2] .. ' ' .. a[5], 'PX', text(math.max(0, tonumber(a[2]) - now) + 3600000))
  call('ZADD', key('payloads'), a[2], a[1] .. ':' .. a[3])
  call('INCRBY', key('payloadbytes'), a[3])
  return 1
end

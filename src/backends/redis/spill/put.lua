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
  -- After its expiry the payload is not read any more. The key expires an hour later, in case no node removes it.
  call('SET', name, a[2] .. ' ' .. a[5], 'PX', text(math.max(0, tonumber(a[2]) - now) + 3600000))
  call('ZADD', key('payloads'), a[2], a[1] .. ':' .. a[3])
  call('INCRBY', key('payloadbytes'), a[3])
  return 1
end

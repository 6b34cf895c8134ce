-- Counts that a link of a client opened.
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

-- The audit: one chain for a namespace, in its first partition. `audit` is a STREAM with a row an entry, whose id is the row's number:
-- `l` the stored line, `a` its time, `u` the hash of the user that an act concerns, or ''. `audithead` is its newest row.

-- The newest row: its number and its MAC.
lib.audit_head = function()
  local head = call('HMGET', key('audithead'), 'seq', 'mac')
  return head[1] or '0', head[2] or ''
end

-- An entry of the stream: its number, line, time and user's hash.
lib.audit_entry = function(entry)
  local fields = entry[2]
  return string.match(entry[1], '^%d+'), fields[2], fields[4], fields[6]
end

-- The line of a row; false where it was removed.
lib.audit_line = function(seq)
  local entry = call('XRANGE', key('audit'), seq .. '-0', seq .. '-0')[1]
  if not entry then return false end
  local _, line = lib.audit_entry(entry)
  return line
end

-- Removes every row up to a number, from the indexes too.
lib.audit_drop = function(through)
  for _, entry in ipairs(call('XRANGE', key('audit'), '-', through .. '-0')) do
    local seq, _, _, user = lib.audit_entry(entry)
    if user ~= '' then call('ZREM', key('auditof', user), seq) end
  end
  call('XTRIM', key('audit'), 'MINID', text(tonumber(through) + 1) .. '-0')
  call('ZREMRANGEBYSCORE', key('auditacts'), '-inf', through)
  call('ZREMRANGEBYSCORE', key('auditends'), '-inf', through)
end

-- Notes an act of a limited kind, or answers that there were too many. `rate`: the key that has the latest ones, by their time.
lib.audit_limited = function(rate, most, window, seq)
  local from = now - window
  call('ZREMRANGEBYSCORE', rate, '-inf', text(from))
  if call('ZCARD', rate) >= most then
    return { 'limited', text(tonumber(call('ZRANGE', rate, 0, 0, 'WITHSCORES')[2]) - from) }
  end
  call('ZADD', rate, text(now), seq)
  call('PEXPIRE', rate, text(window))
  return nil
end

-- How the audit is stored, and the functions that its acts share. A namespace has one chain of rows, in its first
-- partition. Each entry of the STREAM `audit` is a row, and its id is the row's number. Its fields: `l` the stored
-- line, `a` the time, `u` the hash of the user that an act concerns, or ''. The HASH `audithead` has the number and the
-- MAC of the newest row. Three ZSETs index the rows: `auditacts` has the numbers of all acts, `auditof` those of one
-- user's acts, and `auditends` the outcome of each act.

-- Returns the number and the MAC of the newest row.
lib.audit_head = function()
  local head = call('HMGET', key('audithead'), 'seq', 'mac')
  return head[1] or '0', head[2] or ''
end

-- Reads an entry of the stream. Returns its number, its line, its time and the hash of its user.
lib.audit_entry = function(entry)
  local fields = entry[2]
  return string.match(entry[1], '^%d+'), fields[2], fields[4], fields[6]
end

-- Returns the line of the row with this number; false if the row was removed.
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

-- Counts an act whose rate is limited and returns nil. If there were too many such acts, counts nothing and returns the
-- refusal. `rate`: the key of the ZSET that has the latest such acts.
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

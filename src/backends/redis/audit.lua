-- The audit of administrators' acts: a chain of rows, each with the MAC of the previous row.

-- library: lib-audit
-- Functions of the act below, and the format of the audit, whose keys audit.ts reads. A namespace has one chain of
-- rows, in its first partition. Each entry of the STREAM `audit` is a row; the id of the entry is the row's number. Its
-- fields: `l` the stored line, `a` the time, `u` the hash of the user that an act concerns, or ''. The HASH `audithead`
-- contains the number and the MAC of the newest row. Three ZSETs index the rows: `auditacts` by number of the act,
-- `auditof` the acts that concern one user, and `auditends` the outcome of each act.

-- Reads an entry of the stream. Returns its number, its time and the hash of its user.
lib.audit_entry = function(entry)
  return string.match(entry[1], '^%d+'), entry[2][4], entry[2][6]
end

-- Removes every row up to a number, from the indexes too.
lib.audit_drop = function(through)
  for _, entry in ipairs(call('XRANGE', key('audit'), '-', through .. '-0')) do
    local seq, _, user = lib.audit_entry(entry)
    if user ~= '' then call('ZREM', key('auditof', user), seq) end
  end
  call('XTRIM', key('audit'), 'MINID', text(tonumber(through) + 1) .. '-0')
  call('ZREMRANGEBYSCORE', key('auditacts'), '-inf', through)
  call('ZREMRANGEBYSCORE', key('auditends'), '-inf', through)
end

-- Counts an act whose rate is limited, and returns nil. If there were too many such acts, counts nothing and returns
-- the refusal. `rate`: the key of the ZSET with the latest acts of this kind.
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

-- act: append
-- Appends a row to the audit if it directly follows the newest row. So the chain never forks, even if several relays
-- append at once.
-- a: 1 MAC of the previous row; of the new row: 2 number, 3 MAC, 4 line, 5 time, 6 kind, 7 hash of the user that an act
--    concerns, 8 number of the act whose outcome it is; 9 remove the rows up to this number. If the rate of such acts
--    is limited: 10 hash of the administrator and the action, 11 the most acts in a window, 12 length of the window
--    (ms).
-- Returns {'appended', number of rows, number and time of the oldest row}; {'moved', number and MAC of the newest row}
-- if the new row does not follow it; or {'limited', ms until such an act is allowed}.
-- class: grow
-- needs: lib-audit
acts['audit-append'] = function(a)
  local head = call('HMGET', key('audithead'), 'seq', 'mac')
  local seq, mac = head[1] or '0', head[2] or ''
  if mac ~= a[1] or tonumber(seq) + 1 ~= tonumber(a[2]) then return { 'moved', seq, mac } end
  local refused = given(a[10]) and lib.audit_limited(key('auditrate', a[10]), tonumber(a[11]), tonumber(a[12]), a[2])
  if refused then return refused end
  if given(a[9]) then lib.audit_drop(a[9]) end
  call('XADD', key('audit'), a[2] .. '-0', 'l', a[4], 'a', a[5], 'u', a[7])
  call('HSET', key('audithead'), 'seq', a[2], 'mac', a[3])
  if a[6] == 'act' then
    call('ZADD', key('auditacts'), a[2], a[2])
    if a[7] ~= '' then call('ZADD', key('auditof', a[7]), a[2], a[2]) end
  end
  if given(a[8]) then call('ZADD', key('auditends'), a[8], a[8] .. ':' .. a[2]) end
  local first, at = lib.audit_entry(call('XRANGE', key('audit'), '-', '+', 'COUNT', 1)[1])
  return { 'appended', text(tonumber(a[2]) - tonumber(first) + 1), first, at }
end

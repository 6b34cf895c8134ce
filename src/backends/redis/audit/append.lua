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
  local seq, mac = lib.audit_head()
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
  local first, _, at = lib.audit_entry(call('XRANGE', key('audit'), '-', '+', 'COUNT', 1)[1])
  return { 'appended', text(tonumber(a[2]) - tonumber(first) + 1), first, at }
end

-- Appends a row to the audit if it follows the newest one: so the chain never forks, however many relays write it.
-- a: 1 MAC of the row before; 2 its number; 3 its MAC; 4 line; 5 time; 6 kind; 7 hash of the user it concerns; 8 number of the act whose
--    outcome it is; 9 number up to which rows are removed; 10 hash of who acts and how, where such acts are limited: 11 to so many, 12 in
--    so many ms.
-- Returns {'appended', how many rows, number and time of the oldest}, {'moved', number, MAC} or {'limited', ms}.
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

-- Lists the rows of acts in the audit, newest first. a: 1 hash of the user that they concern, or '' for all; 2 only
-- rows before this number, or ''; 3 the most rows. Returns for each row its number, its line, and the line of its
-- outcome or false.
-- class: allow_oom
-- needs: lib-audit
acts['audit-list'] = function(a)
  local name = given(a[1]) and key('auditof', a[1]) or key('auditacts')
  local from = given(a[2]) and '(' .. a[2] or '+inf'
  local found = {}
  for _, seq in ipairs(call('ZRANGE', name, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, a[3])) do
    local ending = call('ZRANGEBYSCORE', key('auditends'), seq, seq)[1]
    found[#found + 1] = seq
    found[#found + 1] = lib.audit_line(seq)
    found[#found + 1] = ending and lib.audit_line(string.match(ending, ':(%d+)$')) or false
  end
  return found
end

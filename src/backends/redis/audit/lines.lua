-- Reads stored lines of the audit, oldest first. a: 1 the number before the first line; 2 the most lines. Returns the
-- lines.
-- class: allow_oom
-- needs: lib-audit
acts['audit-lines'] = function(a)
  local lines = {}
  local from = text(tonumber(a[1]) + 1) .. '-0'
  for i, entry in ipairs(call('XRANGE', key('audit'), from, '+', 'COUNT', a[2])) do
    local _, line = lib.audit_entry(entry)
    lines[i] = line
  end
  return lines
end

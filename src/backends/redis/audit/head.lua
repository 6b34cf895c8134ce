-- Reads the number and the MAC of the audit's newest row. Returns {number, MAC}.
-- class: allow_oom
-- needs: lib-audit
acts['audit-head'] = function()
  return { lib.audit_head() }
end

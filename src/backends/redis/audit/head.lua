-- The newest row of the audit. Returns {number, MAC}.
-- class: allow_oom
-- needs: lib-audit
acts['audit-head'] = function()
  return { lib.audit_head() }
end

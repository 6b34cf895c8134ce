-- Reads what all users together hold of the shares that are counted in this partition. Returns the amounts of
-- queued_bytes, result_bytes, marks and history_bytes.
-- class: allow_oom
-- needs: lib-shares
acts['shares-held'] = function()
  local found = {}
  for i, share in ipairs({ 'q', 'r', 'm', 'h' }) do found[i] = text(lib.shares_held(share)) end
  return found
end

-- Reads what all users together hold of the shares that are counted in this partition. Returns the amounts of
-- queued_bytes, result_bytes and marks.
-- class: allow_oom
-- needs: lib-shares
acts['shares-held'] = function()
  local found = {}
  for i, share in ipairs({ 'q', 'r', 'm' }) do found[i] = text(lib.shares_held(share)) end
  return found
end

-- Shares: how much of each resource users hold.

-- library: lib-shares
-- Counts what users hold of shares in this partition. The meta key has the amount of all users (`<share>`), of each
-- user (`<share>:<user's hash>`) and of each span of a user that is removed as a whole (`<span>:<user's hash>`). The
-- shares are `q` queued_bytes, `r` result_bytes, `m` marks and `h` history_bytes. A field is removed once its amount is
-- 0. Transactions count what acts on commands and appended rows take and give back (see program/transaction.lua).

lib.shares_add = function(field, by)
  if call('HINCRBY', KEYS[1], field, by) <= 0 then call('HDEL', KEYS[1], field) end
end

-- Returns the amount of all users, or of one user if `uh` is given.
lib.shares_held = function(share, uh)
  return tonumber(call('HGET', KEYS[1], uh and joined(share, uh) or share) or 0)
end

-- Counts an amount that a user takes, or gives back if it is negative. `span`: the span with which the amount is given
-- back, or nil.
lib.shares_take = function(share, uh, amount, span)
  if amount == 0 then return end
  lib.shares_add(share, amount)
  lib.shares_add(joined(share, uh), amount)
  if span then lib.shares_add(joined(span, uh), amount) end
end

-- Gives back everything that was counted for a span of a user. Called when the span is removed.
lib.shares_return = function(share, uh, span)
  lib.shares_take(share, uh, -lib.shares_held(span, uh), span)
end

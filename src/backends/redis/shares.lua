-- Shares: how much of each resource users hold.

-- library: lib-shares
-- Counts what users hold of shares in this partition. The meta key has the amount of all users (`<share>`), of each
-- user (`<share>:<user's hash>`) and of each span of a user that is removed as a whole (`<span>:<user's hash>`). The
-- shares are `q` queued_bytes, `r` result_bytes, `m` marks and `h` history_bytes. A field is removed once its amount is
-- 0. Counting seldom needs a command of its own, because nearly every call writes the meta key anyway.

-- Reads the amount in a field: `held`, and `text`, a function that returns what the field must be at the end of the
-- call. An act changes `held` only with `shares_add`.
lib.shares_amount = function(field)
  return fact('amount', field, lib.shares_read)
end
lib.shares_read = function(field)
  local amount = { held = tonumber(get(KEYS[1], field) or 0) }
  amount.text = function() return amount.held > 0 and text(amount.held) end
  return amount
end

lib.shares_add = function(field, by)
  local amount = lib.shares_amount(field)
  amount.held = amount.held + by
  set(KEYS[1], field, amount.text)
end

-- Returns the amount of all users, or of one user if `uh` is given.
lib.shares_held = function(share, uh)
  return lib.shares_amount(uh and joined(share, uh) or share).held
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

-- act: held
-- Reads what all users together hold of the shares that are counted in this partition. Returns the amounts of
-- queued_bytes, result_bytes, marks and history_bytes.
-- class: allow_oom
-- needs: lib-shares
acts['shares-held'] = function()
  local found = {}
  for i, share in ipairs({ 'q', 'r', 'm', 'h' }) do found[i] = text(lib.shares_held(share)) end
  return found
end

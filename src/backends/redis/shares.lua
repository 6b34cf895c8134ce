-- Shares: how much of each resource users hold.

-- library: lib-shares
-- Counts what users hold of shares in this partition. The meta key has the amount of all users (`<share>`), of each
-- user (`<share>:<user's hash>`) and of each span of a user that is removed as a whole (`<span>:<user's hash>`). The
-- shares are `q` queued_bytes, `r` result_bytes, `m` marks and `h` history_bytes. A field is removed once its amount is
-- 0. Counting seldom needs a command of its own, because nearly every call writes the meta key anyway.

-- BORROWED_PART and RESERVE_PART of core/shares/shares.ts.
lib.shares_borrowed = 0.75
lib.shares_reserve = 1 / 16

-- Declares that an act may count amounts of a user. `span`: see shares_take.
lib.shares_want = function(share, uh, span)
  want(KEYS[1], share, joined(share, uh), span and joined(span, uh))
end

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

-- Returns why a user may not take `amount` more of a share: 'share_exceeded', 'store_full', or nil. `bound`: the
-- guarantee of a user, and the total of this partition or cjson.null. This is the rule of core/shares/shares.ts.
lib.shares_refusal = function(bound, share, uh, amount)
  local guarantee, total = bound[1], bound[2]
  local used, held = lib.shares_held(share), lib.shares_held(share, uh)
  local wanted = held + amount
  if total == cjson.null then return wanted > guarantee and 'share_exceeded' or nil end
  local after, reserve = used + amount, math.floor(total * lib.shares_reserve)
  if wanted > guarantee and after > total * lib.shares_borrowed then return 'share_exceeded' end
  if after <= total then return nil end
  local free = total + reserve - after
  return (free < 0 or (wanted > 1 and wanted * reserve > free * free)) and 'store_full' or nil
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

-- Counts what users hold of shares in this partition. The meta key has the amount of all users (`<share>`), of each
-- user (`<share>:<user's hash>`) and of each span of a user that is removed as a whole (`<span>:<user's hash>`). The
-- shares are `q` queued_bytes, `r` result_bytes, `m` marks and `h` history_bytes. A field is removed once its amount is
-- 0. Counting seldom costs a further command, because nearly every call writes the meta key anyway.
lib.shares_borrowed = 0.75

-- Declares that an act may count amounts of a user. `span`: see shares_take.
lib.shares_want = function(share, uh, span)
  want(KEYS[1], unpack(lib.shares_fields(share, uh, span)))
end

lib.shares_fields = function(share, uh, span)
  return { share, share .. ':' .. uh, span and span .. ':' .. uh }
end

lib.shares_held = function(...)
  local found = get(KEYS[1], ...)
  for i = 1, #found do found[i] = tonumber(found[i] or 0) end
  return unpack(found)
end

-- Returns why a user may not take `amount` more of a share: 'share_exceeded', 'store_full', or nil. `bound`: the
-- guarantee of a user, and the total of this partition or cjson.null. core/shares/shares.ts has the same rule for
-- direct mode.
lib.shares_refusal = function(bound, share, uh, amount)
  local guarantee, total = bound[1], bound[2]
  local used, held = lib.shares_held(share, share .. ':' .. uh)
  local beyond = held + amount > guarantee
  if total == cjson.null then return beyond and 'share_exceeded' or nil end
  if beyond then return used + amount > total * lib.shares_borrowed and 'share_exceeded' or nil end
  return used + amount > total and 'store_full' or nil
end

-- Counts an amount that a user takes, or gives back if it is negative. `span`: the span with which the amount is given
-- back, or nil.
lib.shares_take = function(share, uh, amount, span)
  if amount == 0 then return end
  local fields = lib.shares_fields(share, uh, span)
  for i, held in ipairs({ lib.shares_held(unpack(fields)) }) do
    set(KEYS[1], fields[i], held + amount > 0 and text(held + amount))
  end
end

-- Gives back everything that was counted for a span of a user. Called when the span is removed.
lib.shares_return = function(share, uh, span)
  lib.shares_take(share, uh, -lib.shares_held(span .. ':' .. uh), span)
end

-- Shares: how much of each resource users hold.

-- library: lib-shares
-- Counts how much users hold of each share in this partition. The meta key has three kinds of fields: the amount of all
-- users (`<share>`), of one user (`<share>:<user's hash>`), and of one span of a user, which is removed as a whole
-- (`<span>:<user's hash>`; `k<span>`: the marks in a span of ended commands). The shares are `q` queued_bytes, `r`
-- result_bytes, `m` marks, `e` ended_records, `d` dedup_marks and `h` history_bytes. A field is removed once its amount
-- is 0. Transactions change the amounts for acts on commands and for appended rows (see program/transaction.lua).

lib.shares_add = function(field, by)
  if call('HINCRBY', KEYS[1], field, by) <= 0 then call('HDEL', KEYS[1], field) end
end

-- Returns the amount that all users hold, or that one user holds if `uh` is given.
lib.shares_held = function(share, uh)
  return tonumber(call('HGET', KEYS[1], uh and share .. ':' .. uh or share) or 0)
end

-- Adds an amount to what a user holds; a negative amount is given back. `span`: the span that gives the amount back
-- when it is removed, or nil.
lib.shares_take = function(share, uh, amount, span)
  if amount == 0 then return end
  lib.shares_add(share, amount)
  lib.shares_add(share .. ':' .. uh, amount)
  if span then lib.shares_add(span .. ':' .. uh, amount) end
end

-- Gives back everything that was counted for a span of a user. Called when the span is removed.
lib.shares_return = function(share, uh, span)
  lib.shares_take(share, uh, -lib.shares_held(span, uh), span)
end

-- Returns the hash and the id of the user who is most over a guarantee, and the smaller of two excesses: over the
-- guarantee, and over the next user (at least 1). Returns nil if no user is over. `index`: the kind of the ZSET that
-- contains the users who were over the guarantee when they last took more, scored by their amounts then. This function
-- corrects outdated scores.
lib.shares_most_over = function(share, index, guarantee)
  while true do
    local top = call('ZREVRANGE', key(index), 0, 1, 'WITHSCORES')
    if not top[1] then return nil end
    local userId, uh = string.match(top[1], '^(.*)%z(.*)$')
    local held = lib.shares_held(share, uh)
    if held <= guarantee then call('ZREM', key(index), top[1])
    elseif held ~= tonumber(top[2]) then call('ZADD', key(index), text(held), top[1])
    else return uh, userId, math.max(1, held - math.max(guarantee, tonumber(top[4] or 0))) end
  end
end

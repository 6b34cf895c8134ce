-- Shares: how much of each resource users hold.

-- library: lib-shares
-- Counts what users hold of shares in this partition. The meta key has the amount of all users (`<share>`), of each
-- user (`<share>:<user's hash>`) and of each span of a user that is removed as a whole (`<span>:<user's hash>`;
-- `k<span>`: the marks in a span of ended commands). The shares are `q` queued_bytes, `r` result_bytes, `m` marks, `e`
-- ended_records, `d` dedup_marks and `h` history_bytes. A field is removed once its amount is 0. Transactions count what
-- acts on commands and appended rows take and give back (see program/transaction.lua).

lib.shares_add = function(field, by)
  if call('HINCRBY', KEYS[1], field, by) <= 0 then call('HDEL', KEYS[1], field) end
end

-- Returns the amount of all users, or of one user if `uh` is given.
lib.shares_held = function(share, uh)
  return tonumber(call('HGET', KEYS[1], uh and share .. ':' .. uh or share) or 0)
end

-- Counts an amount that a user takes, or gives back if it is negative. `span`: the span with which the amount is given
-- back, or nil.
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

-- Returns the hash and the id of the user who is most over a guarantee, and how much more than the guarantee and than
-- the next user they hold, at least 1; nil if no user is over. `index`: the kind of the ZSET with the users that were
-- over it when they last took more, by their amounts then. It is corrected on the way.
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

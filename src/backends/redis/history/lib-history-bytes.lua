-- Counts the bytes of history that each user has, and removes rows beyond the share history_bytes. Link histories are
-- not counted, because they have limits of their own. A row's `shares`: the guarantee of a user, and the total of this
-- partition or cjson.null; nil if nothing is removed for this row. `historyover` has the users that were over their
-- guarantee when they last appended a row, by their bytes at that time.
-- needs: lib-history, lib-history-blocks, lib-history-commands, lib-shares

-- The most streams that one call shortens.
lib.history_evictions = 64

lib.history_user = function(row)
  return row.userId .. '\0' .. row.uh
end

-- Adds `by` to the bytes of a row's user.
lib.history_count = function(row, by)
  if row.suffix == lib.history_links then return end
  lib.shares_take('h', row.uh, by)
  local held = lib.shares_held('h', row.uh)
  if row.shares and held > row.shares[1] then put(key('historyover'), text(held), lib.history_user(row)) end
  if by < 0 and held == 0 then drop(key('historyover'), lib.history_user(row)) end
end

-- Sets the bytes of a row's user to 0. Called when the last stream of the user is forgotten: bytes may still be counted
-- for streams whose heads had expired before.
lib.history_uncount = function(row)
  lib.history_count(row, -lib.shares_held('h', row.uh))
end

-- Removes the oldest rows until the total is kept, once in a call and in at most `history_evictions` streams. They are
-- those of the user who is most over their guarantee, or of all users if no user is over. Called before a row is
-- appended.
lib.history_make_bytes = function(row)
  if not row.shares or row.shares[2] == cjson.null or lib.history_made then return end
  if lib.shares_held('h') <= row.shares[2] then return end
  lib.history_made = true
  flush()
  for _ = 1, lib.history_evictions do
    local excess = lib.shares_held('h') - row.shares[2]
    local victim = excess > 0 and (lib.history_of_most_over(row.shares[1]) or lib.history_of_oldest())
    if not victim then return end
    lib.history_shorten(victim, excess)
  end
end

-- Returns the least recently written stream of the user who is most over their guarantee; nil if no user is over.
lib.history_of_most_over = function(guarantee)
  local index = key('historyover')
  while true do
    local top = call('ZREVRANGE', index, 0, 0, 'WITHSCORES')
    if not top[1] then return nil end
    local userId, uh = string.match(top[1], '^(.*)%z(.*)$')
    local held = lib.shares_held('h', uh)
    if held <= guarantee then call('ZREM', index, top[1])
    elseif held ~= tonumber(top[2]) then call('ZADD', index, text(held), top[1])
    else
      local suffix, sth = lib.history_oldest(uh)
      if suffix then return { userId = userId, uh = uh, suffix = suffix, sth = sth } end
      call('ZREM', index, top[1])
    end
  end
end

-- Returns the least recently written stream of all users, as far as the index of streams knows.
lib.history_of_oldest = function()
  for _, member in ipairs(call('ZRANGE', key('streamgone'), 0, 63)) do
    local userId, suffix, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
    if suffix ~= lib.history_links then return { userId = userId, uh = uh, suffix = suffix, sth = sth } end
  end
  return nil
end

-- Removes the oldest blocks of a stream until `excess` bytes are removed, or the whole stream if it has no more than
-- that. Records that rows were dropped early.
lib.history_shorten = function(row, excess)
  local head = lib.history_head(row.uh, row.sth)
  local before = head and head.bytes or 0
  local left = before - excess
  local oldest = left > 0 and lib.history_trim(row, head, { any = true, beyond = function() return head.bytes > left end })
  if not oldest then return lib.history_drop(row, head) end
  call('XTRIM', key('stream', row.sth), 'MINID', oldest)
  head.evictedAt = text(math.max(tonumber(head.evictedAt), head.droppedAt))
  lib.history_evicted(row, head.droppedAt)
  lib.history_count(row, head.bytes - before)
  lib.history_note(row, head)
end

-- Forgets a stream before its rows are too old. `shown`: its head, if it was still shown. In this case the time of its
-- newest row is added to `evicted`.
lib.history_drop = function(row, shown)
  lib.history_remove_places(row, '+')
  lib.history_forget(lib.history_member(row))
  if shown then lib.history_evicted(row, shown.at) end
end

-- Records the time of the newest row of a user that was dropped early.
lib.history_evicted = function(row, at)
  call('ZADD', key('evicted'), 'GT', text(at), row.userId)
end

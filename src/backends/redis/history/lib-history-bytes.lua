-- The bytes of history: how many each user has, and what is removed beyond the share history_bytes. Link histories are
-- not counted, because they have bounds of their own. A row's `shares`: the guarantee of a user, and the total of this
-- partition or cjson.null; nil if nothing is removed for this row. `historyover` has the users that were over their
-- guarantee when they last appended a row, by their bytes at that time.
-- needs: lib-history, lib-history-blocks, lib-shares

-- One act shortens at most this many streams.
lib.history_evictions = 64

lib.history_user = function(row)
  return row.userId .. '\0' .. row.uh
end

-- Adds to the bytes of a row's user.
lib.history_count = function(row, by)
  if row.suffix == lib.history_links then return end
  lib.shares_take('h', row.uh, by)
  local held = lib.shares_held('h:' .. row.uh)
  if row.shares and held > row.shares[1] then put(key('historyover'), text(held), lib.history_user(row)) end
  if by < 0 and held == 0 then drop(key('historyover'), lib.history_user(row)) end
end

-- Called when the last stream of a user is forgotten. The heads of its streams may have expired before, so what is
-- still counted is given back here.
lib.history_uncount = function(row)
  lib.history_count(row, -lib.shares_held('h:' .. row.uh))
end

-- Called before a row is appended: if the total is used up, removes the oldest rows of the user who is most over their
-- guarantee, or of all if no user is over.
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

-- The stream, written longest ago, of the user who is most over their guarantee; nil if no user is over.
lib.history_of_most_over = function(guarantee)
  local index = key('historyover')
  while true do
    local top = call('ZREVRANGE', index, 0, 0, 'WITHSCORES')
    if not top[1] then return nil end
    local userId, uh = string.match(top[1], '^(.*)%z(.*)$')
    local held = lib.shares_held('h:' .. uh)
    if held <= guarantee then call('ZREM', index, top[1])
    elseif held ~= tonumber(top[2]) then call('ZADD', index, text(held), top[1])
    else
      local suffix, sth = lib.history_oldest(uh)
      if suffix then return { userId = userId, uh = uh, suffix = suffix, sth = sth } end
      call('ZREM', index, top[1])
    end
  end
end

-- A stream of any user that was written long ago, as far as the index of streams knows.
lib.history_of_oldest = function()
  for _, member in ipairs(call('ZRANGE', key('streamgone'), 0, 63)) do
    local userId, suffix, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
    if suffix ~= lib.history_links then return { userId = userId, uh = uh, suffix = suffix, sth = sth } end
  end
  return nil
end

-- Removes the oldest blocks of a stream until `excess` bytes are removed, or the whole stream if it has no more than
-- that, and notes that they were dropped early.
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

-- Forgets a stream. `shown`: its head, if it was still shown: then `evicted` gets the time of its newest row.
lib.history_drop = function(row, shown)
  lib.history_forget(lib.history_member(row))
  if shown then lib.history_evicted(row, shown.at) end
end

-- Notes the time of the newest row of a user that was dropped early.
lib.history_evicted = function(row, at)
  call('ZADD', key('evicted'), 'GT', text(at), row.userId)
end

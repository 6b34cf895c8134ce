-- How messages are appended, and how streams are forgotten. history-rows.lua defines how rows are stored.

-- library: lib-history
-- Appends rows to history, and forgets streams. There is one STREAM for each user and suffix. Its rows are numbered by
-- `seq`, without gaps, and stored in blocks (lib-history-blocks). Readers skip rows that are too old, and later writes
-- remove them. A stream is forgotten as soon as its newest row is too old. The HASH `streamheads` of a user contains a
-- field `<hash>` with the head of each stream (last seq, its time, and more: see history_head). Its other fields are
-- `t`, the number of the user's last write; `f`, the highest seq of a forgotten stream; and `s`, the spans of `cmdrows`
-- (lib-history-spans).
-- needs: lib-history-blocks, lib-history-bytes, lib-history-spans, lib-shares

lib.history_grace = 3600000
-- The suffix of a user's link history. This stream can only be read by its name. It is not listed or counted among the
-- streams of its user, so it is never removed to make room for another stream, and no other stream is removed for it.
lib.history_links = 'links'

-- Appends a row of a link history, as a block of its own. Transactions append all other rows. `row`: id, userId,
-- suffix, uh, sth, kind, clientId, instanceId, payload; and as numbers streamMessages and retentionMs.
lib.history_retain = function(row)
  local info, nul = lib.history_info(row), '\0'
  local before = info.renewed
  -- The same formula as `lagOf` in history-rows.ts.
  local stale = math.abs(now - before) >= math.min(60000, math.floor(row.retentionMs / 8))
  info.at, info.seq = math.max(now, info.at), info.seq + 1
  info.turn = call('HINCRBY', key('streamheads', row.uh), 't', 1)
  local whole = row.id .. nul .. row.kind .. nul .. row.clientId .. nul .. row.instanceId .. string.rep(nul, 4) .. '0' ..
    string.rep(nul, 3) .. row.payload .. nul
  call('XADD', key('stream', row.sth), text(info.at) .. '-' .. text(info.seq), '1', whole)
  info.bytes = info.bytes + #whole
  lib.history_shed(row, info, stale and before > 0)
  if stale then
    info.renewed = now
    call('PEXPIRE', key('stream', row.sth), text(row.retentionMs + lib.history_grace))
    call('PEXPIRE', key('streamheads', row.uh), text(row.retentionMs + 2 * lib.history_grace))
    call('ZADD', key('streamgone'), text(info.at + row.retentionMs), lib.history_member(row))
  end
  lib.history_note(row, info)
end

-- Reads the head of a stream; nil if the stream does not exist. `seq`, `at`: those of the last row. `turn`: the number
-- of the last write. `next`: the seq after the oldest block, to the knowledge of the head.
lib.history_head = function(uh, sth)
  local head = call('HGET', key('streamheads', uh), sth)
  if not head then return nil end
  local seq, at, turn, renewed, evictedAt, behind, bytes = string.match(head, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    seq = tonumber(seq), at = tonumber(at), turn = tonumber(turn), renewed = tonumber(renewed), evictedAt = evictedAt,
    next = tonumber(behind), bytes = tonumber(bytes),
  }
end

-- Writes the head of a row's stream.
lib.history_note = function(row, info)
  local head = { text(info.seq), text(info.at), text(info.turn), text(info.renewed), info.evictedAt, text(info.next), text(info.bytes) }
  call('HSET', key('streamheads', row.uh), row.sth, table.concat(head, ' '))
end

-- Reads the head of a row's stream. Opens the stream if it does not exist.
lib.history_info = function(row)
  local info = lib.history_head(row.uh, row.sth)
  if info and info.at + row.retentionMs > now then return info end
  if info then lib.history_forget(lib.history_member(row)) end
  return lib.history_open(row)
end

-- Opens a stream. If the stream was forgotten before, its rows continue above its last `seq`. If that seq is no longer
-- known, they continue at `now` in microseconds, which is higher than any seq that the stream can have reached.
lib.history_open = function(row)
  lib.history_sweep(row.retentionMs, 3)
  if row.suffix ~= lib.history_links then
    if call('ZCARD', key('streams', row.uh)) >= row.streamsPerUser then lib.history_make_room(row) end
    call('ZADD', key('streams', row.uh), 0, row.suffix)
    call('ZADD', key('streamusers'), 0, row.userId .. '\0' .. row.uh)
  end
  local highest = tonumber(call('HGET', key('streamheads', row.uh), 'f') or 0)
  local seq = math.max(highest, now * 1000)
  return {
    seq = seq, at = 0, turn = 0, renewed = 0, evictedAt = call('ZSCORE', key('evicted'), row.userId) or '0', next = seq + 1,
    bytes = 0,
  }
end

-- Returns the name of a row's stream in the index `streamgone`.
lib.history_member = function(row)
  return row.userId .. '\0' .. row.suffix .. '\0' .. row.uh .. '\0' .. row.sth
end

-- Returns suffix, hash and head of the user's stream that was written least recently; nil if there is none. The index
-- may be outdated, so the head of the stream that it names is compared, and the index is corrected if the stream was
-- written since.
lib.history_oldest = function(uh)
  local age = key('streamage', uh)
  while true do
    local found = call('ZRANGE', age, 0, 0, 'WITHSCORES')
    if not found[1] then return nil end
    local suffix, sth = string.match(found[1], '^(.*)%z(.*)$')
    local head = lib.history_head(uh, sth)
    if not head or head.turn == tonumber(found[2]) then return suffix, sth, head end
    call('ZADD', age, text(head.turn), found[1])
  end
end

-- Forgets the user's least recently written stream, to make room for a new one.
lib.history_make_room = function(row)
  local suffix, sth, head = lib.history_oldest(row.uh)
  if not suffix then return end
  local shown = head and head.at > now - row.retentionMs and head or nil
  lib.history_drop({ userId = row.userId, suffix = suffix, uh = row.uh, sth = sth }, shown)
end

-- Forgets a stream. The highest `seq` of the user's forgotten streams is kept for a while. If this stream is opened
-- again, its numbers continue above that `seq`.
lib.history_forget = function(member)
  local userId, suffix, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
  local heads, head = key('streamheads', uh), lib.history_head(uh, sth)
  call('UNLINK', key('stream', sth))
  if head then
    lib.history_count({ userId = userId, suffix = suffix, uh = uh }, -head.bytes)
    call('HSET', heads, 'f', text(math.max(head.seq, tonumber(call('HGET', heads, 'f') or 0))))
    call('HDEL', heads, sth)
  end
  call('ZREM', key('streamgone'), member)
  call('ZREM', key('streamage', uh), suffix .. '\0' .. sth)
  call('ZREM', key('streams', uh), suffix)
  if call('EXISTS', key('streams', uh)) == 1 then return end
  call('ZREM', key('streamusers'), userId .. '\0' .. uh)
  -- Some bytes may still be counted for streams whose heads had expired.
  lib.history_count({ userId = userId, uh = uh }, -lib.shares_held('h', uh))
end

-- Forgets at most `count` streams that are too old. Returns true if there are more. The index may be outdated, so the
-- head of each stream that it names is read, and the index is corrected if the stream was written since.
lib.history_sweep = function(retentionMs, count)
  local due = call('ZRANGEBYSCORE', key('streamgone'), '-inf', text(now), 'LIMIT', 0, count + 1)
  for i = 1, math.min(count, #due) do
    local _, _, uh, sth = string.match(due[i], '^(.*)%z(.*)%z(.*)%z(.*)$')
    local head = lib.history_head(uh, sth)
    if head and head.at + retentionMs > now then call('ZADD', key('streamgone'), text(head.at + retentionMs), due[i])
    else lib.history_forget(due[i]) end
  end
  call('ZREMRANGEBYSCORE', key('evicted'), '-inf', text(now - retentionMs))
  lib.history_sweep_spans(count)
  return #due > count
end

-- library: lib-history-open
-- Opens the stream, and the span of places, that a transaction appends rows to (see program/transaction.lua).
-- needs: lib-history, lib-history-spans

-- Opens a stream unless it is open. If it gets rows of commands, opens the span for their places as well. `member`: the
-- stream's name in `streamgone`. `limits`: retentionMs, streamMessages, streamsPerUser. `at`: the time of the call.
-- Returns the key of the places and the milliseconds until it expires; nil if there are no rows of commands.
lib.history_prepare = function(member, limits, at, ofCommands)
  now = at
  limits.userId, limits.suffix, limits.uh, limits.sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
  lib.history_note(limits, lib.history_info(limits))
  if not ofCommands then return nil end
  local start = lib.history_open_span(limits, at)
  local ms = start + lib.history_span_length(limits.retentionMs) + limits.retentionMs + lib.history_grace - at
  return lib.history_span_key(limits.uh, start), text(ms)
end

-- act: users
-- Lists the users that have a stream. a: 1 retention (ms); 2 the most users; 3 the user to continue after, or ''.
-- Returns {now, time of the newest row of any user that was dropped early or false, in turn each user and the number of
-- its streams}; or false if more streams are due to be forgotten than one act forgets: call again.
-- class: allow_oom
-- needs: lib-history
acts['history-users'] = function(a)
  if lib.history_sweep(tonumber(a[1]), 100) then return false end
  local evicted = call('ZREVRANGE', key('evicted'), 0, 0, 'WITHSCORES')
  local found = { text(now), evicted[2] or false }
  -- The members of a user begin with the user and a NUL, so '\1' is above all of them.
  local from = a[3] == '' and '-' or '(' .. a[3] .. '\1'
  for _, member in ipairs(call('ZRANGEBYLEX', key('streamusers'), from, '+', 'LIMIT', 0, a[2])) do
    local userId, uh = string.match(member, '^(.*)%z(.*)$')
    found[#found + 1] = userId
    found[#found + 1] = call('ZCARD', key('streams', uh))
  end
  return found
end

-- act: sweep
-- Forgets streams that are too old. a: 1 retention (ms); 2 the most streams. Returns 1 if there are more, else 0.
-- class: allow_oom
-- needs: lib-history
acts['history-sweep'] = function(a)
  return lib.history_sweep(tonumber(a[1]), tonumber(a[2])) and 1 or 0
end

-- act: trim
-- Removes those blocks of a stream whose rows are all beyond its limits. Called after an append. a: names and values:
-- userId, suffix, uh and sth of the stream, streamMessages, retentionMs, and aged: '1' to look for rows that are too
-- old.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-history, lib-history-blocks
acts['history-trim'] = function(a)
  local row = {}
  for i = 1, #a, 2 do row[a[i]] = given(a[i + 1]) end
  row.streamMessages, row.retentionMs = tonumber(row.streamMessages), tonumber(row.retentionMs)
  local info = lib.history_head(row.uh, row.sth)
  if not info then return end
  lib.history_shed(row, info, row.aged)
  lib.history_note(row, info)
end

-- act: evict
-- Removes the oldest rows until the bytes of history are within their total. Called after an append. a: 1 the guarantee
-- of a user, 2 the total of this partition.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-history-bytes
acts['history-evict'] = function(a)
  lib.history_make_bytes(tonumber(a[1]), tonumber(a[2]))
end

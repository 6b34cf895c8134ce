-- Messages: how rows are appended, how streams are listed and forgotten, and how readers find rows. How rows are stored
-- is in history-rows.lua.

-- library: lib-history
-- Appends rows to history, and forgets streams. Each user and suffix has one STREAM. Its rows are numbered by `seq`,
-- without gaps, and written in blocks (lib-history-blocks). Readers skip rows that are too old, and later writes remove
-- them. A stream is forgotten as soon as its newest row is too old. The HASH `streamheads` of a user has for each of
-- its streams: `<hash>` the head (last seq, its time, and more: see history_head) and `c<hash>` its oldest
-- blocks. It also has `t`: the number of the user's last write, `f`: the highest seq of a stream that was forgotten,
-- `s`: the spans of `cmdrows` (lib-history-spans).
-- needs: lib-history-blocks, lib-history-bytes, lib-history-spans

-- The most streams of a user, for rows that do not give `streamsPerUser`.
lib.history_streams_per_user = 10000
lib.history_grace = 3600000
-- The suffix of a user's link history. This stream is read by its name only. It is not listed or counted among the
-- streams of its user: it is never removed to make room for another stream, and no other stream is removed for it.
lib.history_links = 'links'

-- Returns how far the expiry of a stream and its scores in `streamgone` and `streamage` may be behind its last write,
-- ms.
lib.history_lag = function(retentionMs)
  return math.min(60000, math.floor(retentionMs / 8))
end

-- Appends a row of a link history. All other rows are appended by transactions. `row`: id, userId, suffix, uh, sth,
-- kind, clientId, instanceId, payload, streamMessages and retentionMs (numbers).
lib.history_retain = function(row)
  local info = lib.history_info(row)
  info.at, info.seq = math.max(now, info.at), info.seq + 1
  info.turn = call('HINCRBY', key('streamheads', row.uh), 't', 1)
  lib.history_write(row, info, lib.history_text(row))
end

-- Reads the head of a stream; nil if there is no such stream. `seq` and `at` are those of its last row, `turn` the
-- number of its last write. `next`: the seq after its oldest block, as far as is known.
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

-- Reads the head of a row's stream. Opens the stream if there is no such stream.
lib.history_info = function(row)
  local info = lib.history_head(row.uh, row.sth)
  if info and info.at + row.retentionMs > now then return info end
  if info then lib.history_forget(lib.history_member(row)) end
  return lib.history_open(row)
end

-- Opens a stream. If it had been forgotten, its rows continue above its last `seq`. If that is no longer known, `now`
-- in microseconds is higher than any seq that it can have reached.
lib.history_open = function(row)
  lib.history_sweep(row.retentionMs, 3)
  if row.suffix ~= lib.history_links then
    if lib.history_is_crowded(row) then lib.history_make_room(row) end
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

lib.history_is_crowded = function(row)
  return call('ZCARD', key('streams', row.uh)) >= (row.streamsPerUser or lib.history_streams_per_user)
end

-- Says whether a write must renew the expiry of its stream's keys and remove the rows that are too old.
lib.history_is_stale = function(row, info)
  return math.abs(now - info.renewed) >= lib.history_lag(row.retentionMs)
end

-- Renews the expiry of the keys, and the stream's scores in `streamgone` and `streamage`, if they are stale.
lib.history_renew = function(row, info)
  if not lib.history_is_stale(row, info) then return end
  info.renewed = now
  call('PEXPIRE', key('stream', row.sth), text(row.retentionMs + lib.history_grace))
  call('PEXPIRE', key('streamheads', row.uh), text(row.retentionMs + 2 * lib.history_grace))
  call('ZADD', key('streamgone'), text(info.at + row.retentionMs), lib.history_member(row))
end

-- Returns the name of a row's stream in `streamgone`.
lib.history_member = function(row)
  return row.userId .. '\0' .. row.suffix .. '\0' .. row.uh .. '\0' .. row.sth
end

-- Says whether a name in `streamgone` is that of a link history.
lib.history_of_links = function(member)
  return string.match(member, '^.*%z(.*)%z.*%z.*$') == lib.history_links
end

-- Returns the suffix and the hash of the user's stream whose last write is the oldest; nil if there is none. The index
-- may be behind: the head of the stream that it names is compared, and the index is corrected if the stream was written
-- since.
lib.history_oldest = function(uh)
  local age = key('streamage', uh)
  while true do
    local found = call('ZRANGE', age, 0, 0, 'WITHSCORES')
    if not found[1] then return nil end
    local suffix, sth = string.match(found[1], '^(.*)%z(.*)$')
    local head = lib.history_head(uh, sth)
    if not head or head.turn == tonumber(found[2]) then return suffix, sth end
    call('ZADD', age, text(head.turn), found[1])
  end
end

-- Forgets the user's stream with the oldest last write, to make room for a new one.
lib.history_make_room = function(row)
  local suffix, sth = lib.history_oldest(row.uh)
  if not suffix then return end
  local head = lib.history_head(row.uh, sth)
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
    call('HDEL', heads, sth, 'c' .. sth)
  end
  call('ZREM', key('streamgone'), member)
  call('ZREM', key('streamage', uh), suffix .. '\0' .. sth)
  call('ZREM', key('streams', uh), suffix)
  if call('EXISTS', key('streams', uh)) == 1 then return end
  call('ZREM', key('streamusers'), userId .. '\0' .. uh)
  lib.history_uncount({ userId = userId, uh = uh })
end

-- Forgets at most `count` streams that are too old. Returns true if there are more. The index may be behind: the head
-- of each stream that it names is read, and the index is corrected if the stream was written since.
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

-- Returns a whole number as a text that sorts like the number.
lib.history_pad = function(number)
  local digits = text(number)
  return string.sub('0000000000000000', #digits + 1) .. digits
end

-- library: lib-history-open
-- Opens what a transaction needs of history before it appends rows (see program/transaction.lua).
-- needs: lib-history, lib-history-spans

-- Opens a stream, and the span for the places of its rows if it gets rows of commands, unless they are open. `member`:
-- the stream's name in `streamgone`; `limits`: retentionMs, streamMessages, streamsPerUser; `at`: the time of the call.
-- Returns the key of the places, and after how many milliseconds it expires; nil if there are no rows of commands.
lib.history_prepare = function(member, limits, at, ofCommands)
  now = at
  limits.userId, limits.suffix, limits.uh, limits.sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
  lib.history_note(limits, lib.history_info(limits))
  if not ofCommands then return nil end
  local start = lib.history_open_span(limits, at)
  local ms = start + lib.history_span_length(limits.retentionMs) + limits.retentionMs + lib.history_grace - at
  return lib.history_span_key(limits.uh, start), text(ms)
end

-- library: lib-history-reads
-- Functions that the acts which read history share.
-- needs: lib-history, lib-history-blocks, lib-history-commands, lib-history-spans

-- The most streams that one read forgets.
lib.history_due = 100

-- Lists the places of a command's rows in the HASHes of its user, from a time on. Each place has the same form as in
-- `cmdmore`.
lib.history_few_of = function(uh, commandId, oldest)
  local found = {}
  for _, span in ipairs(lib.history_spans(uh)) do
    local places = call('HGET', lib.history_span_key(uh, span.start), commandId) or ''
    for at, suffix, seq in string.gmatch(places, '(%Z*)%z(%Z*)%z(%Z*)%z') do
      if tonumber(at) >= oldest then
        found[#found + 1] = lib.history_more_place(tonumber(at), suffix, tonumber(seq))
      end
    end
  end
  return found
end

-- Returns a function that returns the next row of a stream at each call, newest first, and nil at the end. Leaves out
-- rows that are not shown. `member`: the stream in the index `streamgone`; `oldest`: the least time, and the most rows
-- of a stream.
lib.history_stream_backwards = function(member, oldest)
  local _, _, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
  local head = lib.history_head(uh, sth)
  local least = head and head.seq - oldest.messages + 1 or 0
  local from, rows = '+', {}
  return function()
    if #rows == 0 then
      local entry = call('XREVRANGE', key('stream', sth), from, oldest.at, 'COUNT', 1)[1]
      if not entry then return nil end
      from = '(' .. entry[1]
      local at, first = string.match(entry[1], '^(%d+)-(%d+)$')
      for i, payload in ipairs(lib.history_payloads(entry)) do
        local seq = tonumber(first) + i - 1
        if seq >= least then rows[#rows + 1] = { member = member, id = at .. '-' .. text(seq), at = tonumber(at), payload = payload } end
      end
    end
    return table.remove(rows)
  end
end

-- Returns a function that returns the next row of the partition at each call, newest first, and nil at the end. Leaves
-- out rows that are not shown, and link histories. It merges the streams, and begins to read each stream only when the
-- merge reaches the time of the stream's last write.
lib.history_backwards = function(retentionMs, streamMessages)
  local oldest = { at = text(math.max(0, now - retentionMs + 1)), messages = streamMessages }
  local heads, listed, upcoming = {}, 0, nil
  -- Sets `upcoming` to the next stream, in the order of last writes. The index may be behind by `history_lag`.
  local function nextStream()
    local found
    repeat
      found = call('ZREVRANGE', key('streamgone'), listed, listed, 'WITHSCORES')
      listed = listed + 1
    until not found[1] or not lib.history_of_links(found[1])
    upcoming = found[1] and { member = found[1], at = tonumber(found[2]) - retentionMs + lib.history_lag(retentionMs) } or nil
  end
  local function newest()
    local best = nil
    for i, head in ipairs(heads) do
      if not best or head.row.at > heads[best].row.at then best = i end
    end
    return best
  end
  nextStream()
  return function()
    local best = newest()
    while upcoming and (not best or upcoming.at >= heads[best].row.at) do
      local rows = lib.history_stream_backwards(upcoming.member, oldest)
      heads[#heads + 1] = { rows = rows, row = rows() }
      if not heads[#heads].row then table.remove(heads) end
      nextStream()
      best = newest()
    end
    if not best then return nil end
    local row, earlier = heads[best].row, heads[best].rows()
    if earlier then heads[best].row = earlier else table.remove(heads, best) end
    return row
  end
end

-- act: look
-- Reads the last `seq` of a stream. a: 1 retention (ms); 2 user; 3 the user's hash; 4 hash of the stream. Returns {now,
-- 1 if there is such a stream or else 0, time of the newest row that was dropped early or false, seq of the last row}.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-look'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local head = lib.history_head(a[3], a[4])
  if head and head.at + tonumber(a[1]) > now then return { text(now), 1, head.evictedAt, text(head.seq) } end
  return { text(now), 0, call('ZSCORE', key('evicted'), a[2]), '0' }
end

-- act: command
-- Lists the places of a command's rows. a: 1 retention (ms); 2 user; 3 the user's hash; 4 command; 5 the most places; 6
-- the place to continue after, or ''; 7 '1': newest first.
-- Returns {now, time of the newest row that was dropped early or false, 1 if the oldest places are missing or else 0,
-- place...}. A place is `<time> NUL <suffix> NUL <seq>`, both numbers with 16 digits. The places are not sorted, and
-- some may come before the place to continue after. The caller sorts and selects them (see history-rows.ts).
-- class: allow_oom
-- needs: lib-history, lib-history-commands, lib-history-reads
acts['history-command'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local name = lib.history_more_key(a[3], a[4])
  local least = math.max(0, now - tonumber(a[1]) + 1)
  local oldest = lib.history_pad(least)
  local from, to = '[' .. oldest, '+'
  if a[7] == '1' and a[6] ~= '' then to = '(' .. a[6]
  elseif a[6] >= oldest then from = '(' .. a[6] end
  local found = { text(now), call('ZSCORE', key('evicted'), a[2]), call('ZCARD', name) >= lib.history_command_rows and 1 or 0 }
  local more
  if a[7] == '1' then more = call('ZREVRANGEBYLEX', name, to, from, 'LIMIT', 0, a[5])
  else more = call('ZRANGEBYLEX', name, from, to, 'LIMIT', 0, a[5]) end
  for _, places in ipairs({ lib.history_few_of(a[3], a[4], least), more }) do
    for _, place in ipairs(places) do found[#found + 1] = place end
  end
  return found
end

-- act: newest
-- Finds the newest messages of all streams except link histories, newest first. a: 1 retention (ms); 2 the most
-- messages; 3 '1': only those with a payload; 4 the most rows of a stream. Returns {now, time of the newest row that
-- was dropped early or false, 1 if there may be more messages or else 0, then for each message: user, suffix, hash of
-- the stream, `<at>-<seq>`}.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
-- rows: all
acts['history-newest'] = function(a)
  lib.history_sweep(tonumber(a[1]), lib.history_due)
  local evicted = call('ZREVRANGE', key('evicted'), 0, 0, 'WITHSCORES')
  local found = { text(now), evicted[2] or false, 0 }
  local rows, budget = lib.history_backwards(tonumber(a[1]), tonumber(a[4])), 1000
  for row in rows do
    if budget == 0 or #found >= 3 + 4 * tonumber(a[2]) then
      found[3] = 1
      return found
    end
    budget = budget - 1
    if a[3] ~= '1' or row.payload then
      local userId, suffix, _, sth = string.match(row.member, '^(.*)%z(.*)%z(.*)%z(.*)$')
      for _, value in ipairs({ userId, suffix, sth, row.id }) do found[#found + 1] = value end
    end
  end
  return found
end

-- act: streams
-- Lists the streams of users. a: 1 retention (ms); 2 the most streams of each user; 3... in turn user, the user's hash,
-- and two bounds of the suffixes for ZRANGEBYLEX. Returns {now, then for each user {number of its streams, time of the
-- newest row that was dropped early or false, suffix...}}; or false if more streams are due to be forgotten than one
-- act forgets: call again.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-streams'] = function(a)
  if lib.history_sweep(tonumber(a[1]), lib.history_due) then return false end
  local found = { text(now) }
  for i = 3, #a, 4 do
    local name = key('streams', a[i + 1])
    local list = { call('ZCARD', name), call('ZSCORE', key('evicted'), a[i]) }
    for _, suffix in ipairs(call('ZRANGEBYLEX', name, a[i + 2], a[i + 3], 'LIMIT', 0, a[2])) do
      list[#list + 1] = suffix
    end
    found[#found + 1] = list
  end
  return found
end

-- act: users
-- Lists the users that have a stream. a: 1 retention (ms); 2 the most users; 3 the user to continue after, or ''.
-- Returns {now, time of the newest row of any user that was dropped early or false, in turn each user and the number of
-- its streams}; or false if more streams are due to be forgotten than one act forgets: call again.
-- class: allow_oom
-- needs: lib-history, lib-history-reads
acts['history-users'] = function(a)
  if lib.history_sweep(tonumber(a[1]), lib.history_due) then return false end
  local evicted = call('ZREVRANGE', key('evicted'), 0, 0, 'WITHSCORES')
  local found = { text(now), evicted[2] or false }
  -- The members of a user begin with the user and a NUL.
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
-- Removes blocks of a stream whose rows are all beyond its limits. Called after an append. a: names and values: userId,
-- suffix, uh and sth of the stream, streamMessages, retentionMs, and aged: '1' to look for rows that are too old.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-history, lib-history-blocks, lib-history-bytes
acts['history-trim'] = function(a)
  local row = {}
  for i = 1, #a, 2 do row[a[i]] = given(a[i + 1]) end
  row.streamMessages, row.retentionMs = tonumber(row.streamMessages), tonumber(row.retentionMs)
  local info = lib.history_head(row.uh, row.sth)
  if not info then return end
  local before = info.bytes
  local bound = lib.history_bound(row, info)
  if row.aged then
    local count, least = bound.beyond, now - row.retentionMs
    bound = { any = true, beyond = function(at, upcoming) return at <= least or count(at, upcoming) end }
  end
  local oldest = lib.history_trim(row, info, bound)
  if oldest then call('XTRIM', key('stream', row.sth), 'MINID', oldest) end
  lib.history_count(row, info.bytes - before)
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

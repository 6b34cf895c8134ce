-- Appends rows to history, and forgets streams. Each user and suffix has one STREAM. Its rows are numbered by `seq`,
-- without gaps, and written in blocks (lib-history-blocks). Readers skip rows that are too old, and later writes remove
-- them. A stream is forgotten as soon as its newest row is too old. The HASH `streamheads` of a user has for each of
-- its streams: `<hash>` the head (last seq, its time, and more: see history_head) and `c<hash>` its oldest
-- blocks. It also has `t`: the number of the user's last write, `f`: the highest seq of a stream that was forgotten,
-- `s`: the spans of `cmdrows` (lib-history-spans).
-- needs: lib-history-blocks, lib-history-bytes, lib-history-commands, lib-history-spans

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

-- Appends a row and returns its `seq` and `at`. `row`: id, userId, suffix, uh, sth, kind, streamMessages, retentionMs
-- (numbers) and, where given, clientId, instanceId, commandId, traceId, parentSpanId, error, spill (JSON), payload,
-- bytes (of the payload), streamsPerUser and shares (see lib-history-bytes).
lib.history_retain = function(row)
  lib.history_make_bytes(row)
  local info = fact('stream', row.sth, lib.history_info, row)
  info.at, info.seq, info.turn = math.max(now, info.at), info.seq + 1, lib.history_turn(row.uh)
  info.rows[#info.rows + 1] = lib.history_text(row)
  local at, seq = info.at, info.seq
  if not info.listed then
    info.listed = true
    atEnd(function() lib.history_write(row, info) end)
  end
  lib.history_by_command(row, at, seq)
  return seq, at
end

-- Returns the next number for a write of this user.
lib.history_turn = function(uh)
  local turns = fact('turns', uh, lib.history_turns)
  turns.last = turns.last + 1
  set(key('streamheads', uh), 't', turns.text)
  return turns.last
end

-- Reads the number of a user's last write. `text`: returns the number as it is then, as text.
lib.history_turns = function(uh)
  local turns = { last = tonumber(get(key('streamheads', uh), 't') or 0) }
  turns.text = function() return text(turns.last) end
  return turns
end

-- Reads the head of a stream; nil if there is no such stream. `seq` and `at` are those of its last row, `turn` the
-- number of its last write. `next`: the seq after its oldest block, as far as is known.
lib.history_head = function(uh, sth)
  local head = get(key('streamheads', uh), sth)
  if not head then return nil end
  local seq, at, turn, renewed, evictedAt, behind, bytes = string.match(head, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    seq = tonumber(seq), at = tonumber(at), turn = tonumber(turn), renewed = tonumber(renewed), evictedAt = evictedAt,
    next = tonumber(behind), bytes = tonumber(bytes), rows = {}, listed = false,
  }
end

-- Writes the head of a row's stream.
lib.history_note = function(row, info)
  local head = { text(info.seq), text(info.at), text(info.turn), text(info.renewed), info.evictedAt, text(info.next), text(info.bytes) }
  set(key('streamheads', row.uh), row.sth, table.concat(head, ' '))
end

-- Reads the head of a row's stream. Opens the stream if there is no such stream.
lib.history_info = function(_, row)
  local info = lib.history_head(row.uh, row.sth)
  if info and info.at + row.retentionMs > now then return info end
  flush()
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
  local highest = tonumber(get(key('streamheads', row.uh), 'f') or 0)
  local seq = math.max(highest, now * 1000)
  return {
    seq = seq, at = 0, turn = 0, renewed = 0, evictedAt = call('ZSCORE', key('evicted'), row.userId) or '0', next = seq + 1,
    bytes = 0, rows = {}, listed = false,
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
  expire(key('streamheads', row.uh), row.retentionMs + 2 * lib.history_grace)
  put(key('streamgone'), text(info.at + row.retentionMs), lib.history_member(row))
  if row.suffix ~= lib.history_links then put(key('streamage', row.uh), text(info.turn), row.suffix .. '\0' .. row.sth) end
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
    set(heads, 'f', text(math.max(head.seq, tonumber(get(heads, 'f') or 0))))
    set(heads, sth, false)
    set(heads, 'c' .. sth, false)
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

-- Builds a row from the arguments, starting at index `first`. They are names and values, alternating.
lib.history_row = function(a, first)
  local row = {}
  for i = first, #a, 2 do row[a[i]] = given(a[i + 1]) end
  for _, name in ipairs({ 'streamMessages', 'retentionMs', 'streamsPerUser' }) do row[name] = tonumber(row[name]) end
  row.shares = row.shares and cjson.decode(row.shares)
  return row
end

-- History: one STREAM for each user and suffix, its entries `<at>-<seq>`, `seq` without holes. What is too old is hidden by the readers,
-- and goes with later writes; a stream goes as soon as its newest message is too old.
-- Besides id and kind, which each has.
lib.history_fields = { 'clientId', 'instanceId', 'commandId', 'traceId', 'parentSpanId', 'error', 'payload', 'spill' }
-- Where a row does not say it.
lib.history_streams_per_user = 10000
-- Messages of one command that can be found by it.
lib.history_command_rows = 100000
lib.history_grace = 3600000

-- Appends a message and returns its `seq` and `at`. `row`: id, userId, suffix, uh, sth, kind, streamMessages, retentionMs (numbers) and, where
-- given, clientId, instanceId, commandId, traceId, parentSpanId, error, spill (JSON), payload, bytes (of the payload), streamsPerUser, and
-- live: of a command's first row, how long (ms) it may live; 'yet' of a later one that comes within that time.
lib.history_retain = function(row)
  fact('history swept', function() return lib.history_sweep(row.retentionMs, 3) end)
  local info = fact('stream:' .. row.sth, function() return lib.history_info(row) end)
  local at, seq = math.max(now, info.at), info.seq + 1
  local stream = key('stream', row.sth)
  call('XADD', stream, 'MAXLEN', text(row.streamMessages), text(at) .. '-' .. text(seq), unpack(lib.history_entry(row)))
  info.at, info.seq = at, seq
  lib.history_wrote(row, info)
  lib.history_by_command(row, at, seq)
  return seq, at
end

-- What is noted of a stream, once for all that a call appends to it: streams in the order last written.
lib.history_wrote = function(row, info)
  if not grouping then return lib.history_touch(row, info) end
  local written = fact('written', function()
    local written = { turn = 0, of = {} }
    atEnd(function()
      table.sort(written.of, function(a, b) return a.turn < b.turn end)
      for _, one in ipairs(written.of) do lib.history_touch(one.row, one) end
    end)
    return written
  end)
  written.turn = written.turn + 1
  info.turn, info.row = written.turn, info.row or row
  if info.listed then return end
  info.listed = true
  written.of[#written.of + 1] = info
end

lib.history_entry = function(row)
  local entry, count = { 'payloadBytes', text(tonumber(row.bytes) or #(row.payload or '')), 'id', row.id, 'kind', row.kind }, 6
  for i = 1, #lib.history_fields do
    local field = lib.history_fields[i]
    local value = row[field]
    if value and value ~= '' then
      entry[count + 1], entry[count + 2] = field, value
      count = count + 2
    end
  end
  return entry
end

-- How far the stream has come; where there is none it is opened. A stream that was forgotten goes on above its last `seq`, and one that
-- was forgotten long ago above it too: `now` in microseconds is more than it can have reached.
lib.history_info = function(row)
  local name = key('streaminfo', row.sth)
  local found = call('HMGET', name, 'seq', 'at', 'live', 'touched')
  local info = { seq = tonumber(found[1] or 0), at = tonumber(found[2] or 0), touched = tonumber(found[4] or 0) }
  if found[3] and info.at + row.retentionMs > now then return info end
  if found[3] then lib.history_forget(lib.history_member(row)) end
  info.seq, info.touched = math.max(info.seq, now * 1000), 0
  if call('ZCARD', key('streams', row.uh)) >= (row.streamsPerUser or lib.history_streams_per_user) then
    lib.history_make_room(row)
  end
  local evictedAt = call('ZSCORE', key('evicted'), row.userId) or '0'
  call('HSET', name, 'user', row.userId, 'suffix', row.suffix, 'live', '1', 'evictedAt', evictedAt)
  call('ZADD', key('streams', row.uh), 0, row.suffix)
  call('ZADD', key('streamusers'), 0, row.userId .. '\0' .. row.uh)
  return info
end

-- The keys' own expiry is garbage collection, so it may be behind by a minute.
lib.history_touch = function(row, info)
  local name, gone = key('streaminfo', row.sth), lib.history_member(row)
  call('XTRIM', key('stream', row.sth), 'MINID', '~', text(math.max(0, now - row.retentionMs + 1)))
  call('HSET', name, 'seq', text(info.seq), 'at', text(info.at))
  put(key('streamgone'), text(info.at + row.retentionMs), gone)
  if math.abs(now - info.touched) >= 60000 then
    call('HSET', name, 'touched', text(now))
    call('PEXPIRE', name, text(row.retentionMs + 2 * lib.history_grace))
    call('PEXPIRE', key('stream', row.sth), text(row.retentionMs + lib.history_grace))
  end
  local age, member = key('streamage', row.uh), row.suffix .. '\0' .. row.sth
  local youngest = call('ZREVRANGE', age, 0, 0, 'WITHSCORES')
  if youngest[1] ~= member then call('ZADD', age, text(tonumber(youngest[2] or 0) + 1), member) end
end

lib.history_member = function(row)
  return row.userId .. '\0' .. row.suffix .. '\0' .. row.uh .. '\0' .. row.sth
end

-- A user's longest unwritten stream goes for a new one; what it still showed is noted as lost for want of room.
lib.history_make_room = function(row)
  flush()
  local oldest = call('ZRANGE', key('streamage', row.uh), 0, 0)[1]
  if not oldest then return end
  local suffix, sth = string.match(oldest, '^(.*)%z(.*)$')
  local at = tonumber(call('HGET', key('streaminfo', sth), 'at') or 0)
  lib.history_forget(lib.history_member({ userId = row.userId, suffix = suffix, uh = row.uh, sth = sth }))
  if at > now - row.retentionMs then call('ZADD', key('evicted'), 'GT', text(at), row.userId) end
end

-- `streaminfo` stays for its time: the stream's numbers go on from there should it come again.
lib.history_forget = function(member)
  local userId, suffix, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
  call('UNLINK', key('stream', sth))
  call('HDEL', key('streaminfo', sth), 'live', 'touched')
  call('ZREM', key('streamgone'), member)
  call('ZREM', key('streamage', uh), suffix .. '\0' .. sth)
  call('ZREM', key('streams', uh), suffix)
  if call('EXISTS', key('streams', uh)) == 0 then call('ZREM', key('streamusers'), userId .. '\0' .. uh) end
end

-- Forgets at most `count` streams that are too old. True when there are more.
lib.history_sweep = function(retentionMs, count)
  local due = call('ZRANGEBYSCORE', key('streamgone'), '-inf', text(now), 'LIMIT', 0, count + 1)
  for i = 1, math.min(count, #due) do lib.history_forget(due[i]) end
  call('ZREMRANGEBYSCORE', key('evicted'), '-inf', text(now - retentionMs))
  return #due > count
end

-- A whole number as a text that sorts as it does.
lib.history_pad = function(number)
  local digits = text(number)
  return string.sub('0000000000000000', #digits + 1) .. digits
end

-- Where a user's messages of a command stand, in order of (time, stream, place).
lib.history_by_command = function(row, at, seq)
  if not row.commandId then return end
  local name = key('cmdrows', row.uh .. ':' .. redis.sha1hex(row.commandId))
  call('ZADD', name, 0, lib.history_pad(at) .. '\0' .. row.suffix .. '\0' .. lib.history_pad(seq))
  if row.live == 'yet' then return end
  call('PEXPIRE', name, text(row.retentionMs + lib.history_grace + (row.live or 0)))
  if row.live then return end
  local count = call('ZCARD', name)
  if count > 100 then call('ZREMRANGEBYLEX', name, '-', '(' .. lib.history_pad(math.max(0, now - row.retentionMs + 1))) end
  if count > lib.history_command_rows then call('ZREMRANGEBYRANK', name, 0, count - lib.history_command_rows - 1) end
end

-- The row that the arguments from `first` on say: names and values in turn.
lib.history_row = function(a, first)
  local row = {}
  for i = first, #a, 2 do row[a[i]] = given(a[i + 1]) end
  for _, name in ipairs({ 'streamMessages', 'retentionMs', 'streamsPerUser' }) do row[name] = tonumber(row[name]) end
  return row
end

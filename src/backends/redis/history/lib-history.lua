-- History: one STREAM for each user and suffix. Its rows are numbered by `seq`, without holes, and written in blocks (lib-history-blocks).
-- What is too old is hidden by the readers, and goes with later writes; a stream goes as soon as its newest row is too old.
-- The HASH `streamheads` of a user holds, for each of its streams, how far it has come: `<hash>` the head, `c<hash>` where its oldest
-- blocks begin. Beside them `t`: the last turn that was given, `f`: the highest seq of a stream that was forgotten, `s`: the newest span of
-- `cmdrows` that was opened.
-- needs: lib-history-blocks, lib-history-commands
-- Where a row does not say it.
lib.history_streams_per_user = 10000
lib.history_grace = 3600000
-- The stream of a user's link history. It is read by its name: it is neither listed nor counted among the streams of its user, neither goes
-- for another nor drops one.
lib.history_links = 'links'

-- How long what is noted of a stream may be behind: its expiry, and its places among the streams that are forgotten next.
lib.history_lag = function(retentionMs)
  return math.min(60000, math.floor(retentionMs / 8))
end

-- Appends a row and returns its `seq` and `at`. `row`: id, userId, suffix, uh, sth, kind, streamMessages, retentionMs (numbers) and, where
-- given, clientId, instanceId, commandId, traceId, parentSpanId, error, spill (JSON), payload, bytes (of the payload) and streamsPerUser.
lib.history_retain = function(row)
  local info = fact('stream:' .. row.sth, function() return lib.history_info(row) end)
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

-- The next number among the writes of a user.
lib.history_turn = function(uh)
  local heads = key('streamheads', uh)
  local turns = fact('turns:' .. uh, function() return { last = tonumber(get(heads, 't')[1] or 0) } end)
  turns.last = turns.last + 1
  set(heads, 't', function() return text(turns.last) end)
  return turns.last
end

-- How far a stream has come; nil where there is none. `next`: the seq behind its oldest block, as far as is known.
lib.history_head = function(uh, sth)
  local head = get(key('streamheads', uh), sth)[1]
  if not head then return nil end
  local seq, at, turn, renewed, evictedAt, behind = string.match(head, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    seq = tonumber(seq), at = tonumber(at), turn = tonumber(turn), renewed = tonumber(renewed), evictedAt = evictedAt,
    next = tonumber(behind), rows = {}, listed = false,
  }
end

lib.history_note = function(row, info)
  local head = { text(info.seq), text(info.at), text(info.turn), text(info.renewed), info.evictedAt, text(info.next) }
  set(key('streamheads', row.uh), row.sth, table.concat(head, ' '))
end

-- How far the stream of a row has come; where there is none it is opened.
lib.history_info = function(row)
  local info = lib.history_head(row.uh, row.sth)
  if info and info.at + row.retentionMs > now then return info end
  flush()
  if info then lib.history_forget(lib.history_member(row)) end
  return lib.history_open(row)
end

-- A stream that was forgotten goes on above its last `seq`, and one that was forgotten long ago above it too: `now` in microseconds is more
-- than it can have reached.
lib.history_open = function(row)
  lib.history_sweep(row.retentionMs, 3)
  if row.suffix ~= lib.history_links then
    if lib.history_is_crowded(row) then lib.history_make_room(row) end
    call('ZADD', key('streams', row.uh), 0, row.suffix)
    call('ZADD', key('streamusers'), 0, row.userId .. '\0' .. row.uh)
  end
  local highest = tonumber(get(key('streamheads', row.uh), 'f')[1] or 0)
  local seq = math.max(highest, now * 1000)
  return {
    seq = seq, at = 0, turn = 0, renewed = 0, evictedAt = call('ZSCORE', key('evicted'), row.userId) or '0', next = seq + 1,
    rows = {}, listed = false,
  }
end

lib.history_is_crowded = function(row)
  return call('ZCARD', key('streams', row.uh)) >= (row.streamsPerUser or lib.history_streams_per_user)
end

-- Once in a while: the keys' own expiry, which is garbage collection, and the stream's places in the indexes of what goes next.
lib.history_renew = function(row, info)
  if math.abs(now - info.renewed) < lib.history_lag(row.retentionMs) then return end
  info.renewed = now
  call('XTRIM', key('stream', row.sth), 'MINID', '~', text(math.max(0, now - row.retentionMs + 1)))
  call('PEXPIRE', key('stream', row.sth), text(row.retentionMs + lib.history_grace))
  expire(key('streamheads', row.uh), row.retentionMs + 2 * lib.history_grace)
  put(key('streamgone'), text(info.at + row.retentionMs), lib.history_member(row))
  if row.suffix ~= lib.history_links then put(key('streamage', row.uh), text(info.turn), row.suffix .. '\0' .. row.sth) end
end

lib.history_member = function(row)
  return row.userId .. '\0' .. row.suffix .. '\0' .. row.uh .. '\0' .. row.sth
end

-- The suffix and the hash of a user's stream that was not written for the longest; nil where there is none. The index may be behind: what it
-- names is looked at, and moved where it was written since.
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

-- A user's longest unwritten stream goes for a new one; what it still showed is noted as lost for want of room.
lib.history_make_room = function(row)
  local suffix, sth = lib.history_oldest(row.uh)
  if not suffix then return end
  local head = lib.history_head(row.uh, sth)
  lib.history_forget(lib.history_member({ userId = row.userId, suffix = suffix, uh = row.uh, sth = sth }))
  if head and head.at > now - row.retentionMs then call('ZADD', key('evicted'), 'GT', text(head.at), row.userId) end
end

-- What the user's streams have reached stays for its time: the numbers of this one go on from there should it come again.
lib.history_forget = function(member)
  local userId, suffix, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
  local heads, head = key('streamheads', uh), lib.history_head(uh, sth)
  call('UNLINK', key('stream', sth))
  if head then
    set(heads, 'f', text(math.max(head.seq, tonumber(get(heads, 'f')[1] or 0))))
    set(heads, sth, false)
    set(heads, 'c' .. sth, false)
  end
  call('ZREM', key('streamgone'), member)
  call('ZREM', key('streamage', uh), suffix .. '\0' .. sth)
  call('ZREM', key('streams', uh), suffix)
  if call('EXISTS', key('streams', uh)) == 0 then call('ZREM', key('streamusers'), userId .. '\0' .. uh) end
end

-- Forgets at most `count` streams that are too old. True when there are more. The index may be behind: what it names is looked at, and moved
-- where it was written since.
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

-- A whole number as a text that sorts as it does.
lib.history_pad = function(number)
  local digits = text(number)
  return string.sub('0000000000000000', #digits + 1) .. digits
end

-- The row that the arguments from `first` on say: names and values in turn.
lib.history_row = function(a, first)
  local row = {}
  for i = first, #a, 2 do row[a[i]] = given(a[i + 1]) end
  for _, name in ipairs({ 'streamMessages', 'retentionMs', 'streamsPerUser' }) do row[name] = tonumber(row[name]) end
  return row
end

-- How rows of history are stored: in blocks, counted by bytes, and indexed by command.

-- library: lib-history-blocks
-- The rows of a stream are stored in blocks: one entry of the STREAM contains the rows of one call, which all have the
-- same time (at most 64 rows or 32 KiB; a single row may be larger). The id of an entry is `<at>-<seq of its first
-- row>`. The entry has one field. Its name is the number of rows; its value is the rows, one after another. A row
-- consists of the following fields, each followed by a NUL: id, kind, clientId, instanceId, commandId, traceId,
-- parentSpanId, bytes of the payload and optional members, error (JSON), spill (JSON), payload. history-rows.ts reads
-- and writes the same format.
-- needs: lib-history-bytes, lib-history-commands

-- `history_read_blocks`: the most blocks that one read returns. `history_first_blocks`: the same for the first read, if
-- it is known up to which row the blocks go. `history_reads`: the most such reads in one call.
lib.history_read_blocks = 16
lib.history_first_blocks = 4
lib.history_reads = 32

-- Returns the command ids of the rows of a block; '' for a row that is about no command. Plain searches take a quarter
-- of the time of a pattern, because a pattern scans each payload.
lib.history_commands_of = function(block)
  local find, found, from = string.find, {}, 1
  while from <= #block do
    for _ = 1, 4 do from = (find(block, '\0', from, true) or #block) + 1 end
    local id = find(block, '\0', from, true) or #block
    found[#found + 1] = string.sub(block, from, id - 1)
    from = id + 1
    for _ = 1, 6 do from = (find(block, '\0', from, true) or #block) + 1 end
  end
  return found
end

-- Removes the blocks of a stream whose rows are all beyond its limits, and subtracts them from the counts of the stream
-- and of its user. `aged`: whether blocks that are too old are removed as well.
lib.history_shed = function(row, info, aged)
  local before = info.bytes
  local oldest = lib.history_trim(row, info, lib.history_bound(row, info, aged))
  if oldest then call('XTRIM', key('stream', row.sth), 'MINID', oldest) end
  lib.history_count(row, info.bytes - before)
end

-- About this many rows beyond the limit on rows may stay for a while, so that several blocks are removed together.
lib.history_slack = 256

-- Decides which blocks of a stream are removed. Blocks beyond the limit on rows are removed together, once they may
-- contain `history_slack` rows or a thirty-second of the limit, whichever is less. Blocks that are too old are removed
-- from time to time. Readers do not show rows beyond the limits that are still stored.
lib.history_bound = function(row, info, aged)
  local oldest, least = info.seq - row.streamMessages + 1, aged and now - row.retentionMs or -1
  local slack = math.min(lib.history_slack, math.floor(row.streamMessages / 32))
  return {
    any = aged or oldest >= info.next + slack,
    oldest = not aged and oldest or nil,
    -- `at`: the time of a block. `upcoming`: the seq of the first row of the next block.
    beyond = function(at, upcoming) return upcoming <= oldest or at <= least end,
  }
end

-- Finds the oldest blocks of a stream for which `bound.beyond` returns true, subtracts them from the counts of the
-- stream, and removes their rows from the index of commands. The last block of a stream is never among them. If the
-- caller must remove these blocks, returns the id of the oldest block that stays, otherwise false. `bound.oldest`: the
-- seq of the oldest row that stays; nil if it is unknown.
lib.history_trim = function(row, info, bound)
  local stream, from, oldest, trimmed = key('stream', row.sth), '-', nil, false
  local count, read, first = bound.oldest and lib.history_first_blocks or lib.history_read_blocks, 0, nil
  for _ = 1, bound.any and lib.history_places_left > 0 and lib.history_reads or 0 do
    local blocks, gone = call('XRANGE', stream, from, '+', 'COUNT', count), {}
    for _, entry in ipairs(blocks) do
      local at, seq = string.match(entry[1], '^(%d+)-(%d+)$')
      local block = { entry = entry, at = tonumber(at), seq = tonumber(seq) }
      local stays = oldest and not bound.beyond(oldest.at, block.seq)
      if oldest then info.next = block.seq end
      if stays then
        lib.history_remove_rows(row, gone)
        return trimmed and oldest.entry[1]
      end
      if oldest then
        trimmed, info.bytes, info.droppedAt = true, info.bytes - #oldest.entry[2][2], oldest.at
        gone[#gone + 1] = oldest.entry
      end
      oldest, first = block, first or block
    end
    lib.history_remove_rows(row, gone)
    if #blocks < count or lib.history_places_left <= 0 then break end
    from, read = '(' .. blocks[#blocks][1], read + #blocks
    -- Reads as many blocks as may have to be removed, and one more that stays, if the blocks have as many rows as those
    -- read before.
    local each = math.max(1, (oldest.seq - first.seq) / math.max(1, read - 1))
    local left = bound.oldest and math.ceil((bound.oldest - oldest.seq) / each) or lib.history_read_blocks
    count = math.max(1, math.min(lib.history_read_blocks, left + 1))
  end
  if trimmed then info.next = oldest.seq + 1 end
  return trimmed and oldest.entry[1]
end

-- library: lib-history-bytes
-- Counts the bytes of history that each user has, and removes rows beyond the share history_bytes. Link histories are
-- not counted, because they have limits of their own. `historyover` has the users that were over their guarantee when
-- they last appended a row, by their bytes at that time.
-- needs: lib-history, lib-history-blocks, lib-history-commands, lib-shares

-- The most streams that one call shortens.
lib.history_evictions = 64

-- Adds `by` to the bytes of a row's user.
lib.history_count = function(row, by)
  if row.suffix == lib.history_links then return end
  lib.shares_take('h', row.uh, by)
  if by < 0 and lib.shares_held('h', row.uh) == 0 then call('ZREM', key('historyover'), row.userId .. '\0' .. row.uh) end
end

-- Removes the oldest rows until the total is within its limit. Runs once in a call, and shortens at most
-- `history_evictions` streams. The rows are those of the user who is most over their guarantee, or of all users if no
-- user is over.
lib.history_make_bytes = function(guarantee, total)
  if not total or lib.history_made then return end
  lib.history_made = true
  for _ = 1, lib.history_evictions do
    local excess = lib.shares_held('h') - total
    local victim = excess > 0 and (lib.history_of_most_over(guarantee) or lib.history_of_oldest())
    if not victim or lib.history_places_left <= 0 then return end
    lib.history_shorten(victim, excess)
  end
end

-- Returns the least recently written stream of the user who is most over their guarantee; nil if no user is over.
lib.history_of_most_over = function(guarantee)
  while true do
    local uh, userId = lib.shares_most_over('h', 'historyover', guarantee)
    if not uh then return nil end
    local suffix, sth = lib.history_oldest(uh)
    if suffix then return { userId = userId, uh = uh, suffix = suffix, sth = sth } end
    call('ZREM', key('historyover'), userId .. '\0' .. uh)
  end
end

-- Returns the stream that was written least recently, of all users, to the knowledge of the index of streams.
lib.history_of_oldest = function()
  for _, member in ipairs(call('ZRANGE', key('streamgone'), 0, 63)) do
    local userId, suffix, uh, sth = string.match(member, '^(.*)%z(.*)%z(.*)%z(.*)$')
    if suffix ~= lib.history_links then return { userId = userId, uh = uh, suffix = suffix, sth = sth } end
  end
  return nil
end

-- Removes the oldest blocks of a stream until `excess` bytes are removed, or the whole stream if it has no more bytes
-- than that. Records that rows were dropped early.
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

-- Forgets a stream before its rows are too old. `shown`: the head of the stream if its rows were still shown; then the
-- time of its newest row is added to `evicted`.
lib.history_drop = function(row, shown)
  lib.history_remove_places(row)
  lib.history_forget(lib.history_member(row))
  if shown then lib.history_evicted(row, shown.at) end
end

-- Records the time of the newest row of a user that was dropped early.
lib.history_evicted = function(row, at)
  call('ZADD', key('evicted'), 'GT', text(at), row.userId)
end

-- library: lib-history-commands
-- Maintains the index that finds the history rows of a command. The place of a row consists of its time, the suffix of
-- its stream and its seq. For each user and span of time, a HASH `cmdrows` contains the first places of each command in
-- that span, as one text. Further places of a command are in its ZSET `cmdmore`. A place is removed with its row,
-- unless the row is removed because of its age: then its whole span is removed soon.
-- needs: lib-history-blocks, lib-history-spans

-- About the most rows whose places one call removes. The limit is needed because Redis answers no other request while a
-- call runs. The next append to a stream continues its trim.
lib.history_places_most = 512
lib.history_places_left = lib.history_places_most

-- Removes the places of all rows of a stream that the caller is about to remove. One call removes the places of about
-- `history_places_most` rows. Readers skip the remaining places, because they name no message, and these are removed
-- with their span.
lib.history_remove_places = function(row)
  local from = '-'
  for _ = 1, lib.history_reads do
    if lib.history_places_left <= 0 then return end
    local blocks = call('XRANGE', key('stream', row.sth), from, '+', 'COUNT', lib.history_read_blocks)
    lib.history_remove_rows(row, blocks)
    if #blocks < lib.history_read_blocks then return end
    from = '(' .. blocks[#blocks][1]
  end
end

-- Removes the places of the rows in these blocks, up to about `history_places_most` in a call. If `row` has
-- `retentionMs`, skips rows that are too old and spans that are over, because a write after the removal might open such
-- a span again.
lib.history_remove_rows = function(row, blocks)
  if lib.history_places_left <= 0 or #blocks == 0 then return end
  local spans, hashes = lib.history_spans(row.uh), {}
  local least = row.retentionMs and now - row.retentionMs + 1 or 0
  for _, entry in ipairs(blocks) do
    local at, seq = string.match(entry[1], '^(%d+)-(%d+)$')
    local span = lib.history_span_of(spans, tonumber(at))
    if span and span.over > now and tonumber(at) >= least then
      local name = lib.history_span_key(row.uh, span.start)
      hashes[name] = hashes[name] or { ids = {}, places = {} }
      local ids, places, start = hashes[name].ids, hashes[name].places, at .. '\0' .. row.suffix .. '\0'
      for i, id in ipairs(lib.history_commands_of(entry[2][2])) do
        if id ~= '' then
          if not places[id] then append(ids, id) end
          places[id] = (places[id] or '') .. start .. text(seq + i - 1) .. '\0'
          lib.history_places_left = lib.history_places_left - 1
        end
      end
    end
  end
  for name, hash in pairs(hashes) do lib.history_remove_gathered(row, name, hash) end
end

-- Removes places from a HASH. Reads the HASH once, and writes it with at most one HDEL and one HSET.
lib.history_remove_gathered = function(row, name, hash)
  local gone, left = { 'HDEL', name }, { 'HSET', name }
  for i, known in ipairs(#hash.ids > 0 and call('HMGET', name, unpack(hash.ids)) or {}) do
    local id = hash.ids[i]
    -- In most cases all rows of a command are removed together.
    local rest = known == hash.places[id] and '' or lib.history_without(row, id, known or '', hash.places[id])
    if known and rest == '' then append(gone, id) elseif known and rest ~= known then append(left, id, rest) end
  end
  if #gone > 2 then call(unpack(gone)) end
  if #left > 2 then call(unpack(left)) end
end

-- Returns the first places of a command without the removed ones. Removes the other removed places from the ZSET of
-- further places.
lib.history_without = function(row, id, known, removed)
  for at, suffix, seq in string.gmatch(removed, '(%Z*)%z(%Z*)%z(%Z*)%z') do
    local first, last = string.find(known, at .. '\0' .. suffix .. '\0' .. seq .. '\0', 1, true)
    if first then known = string.sub(known, 1, first - 1) .. string.sub(known, last + 1)
    else
      local place = string.format('%016.0f', at) .. '\0' .. suffix .. '\0' .. string.format('%016.0f', seq)
      call('ZREM', key('cmdmore', row.uh, redis.sha1hex(id)), place)
    end
  end
  return known
end

-- library: lib-history-spans
-- Divides the index of commands' rows into spans of time. Each span of a user has a HASH `cmdrows`, which is removed as
-- a whole when the rows of the span are too old. The name of a span is its start. Field `s` of a user's `streamheads`
-- lists the user's spans as `<start>:<time of removal>`, oldest first, separated by blanks. The ZSET `rowspans`
-- contains the spans of all users, scored by their time of removal.

-- The length of a span is an eighth of the retention, and at most 12 hours.
lib.history_span_length = function(retentionMs)
  return math.max(1, math.min(43200000, math.floor(retentionMs / 8)))
end

lib.history_span_key = function(uh, start)
  return key('cmdrows', uh, text(start))
end

-- Returns the spans of a user, each {start, over}, oldest first.
lib.history_spans = function(uh)
  local spans = {}
  for start, over in string.gmatch(call('HGET', key('streamheads', uh), 's') or '', '(%d+):(%d+)') do
    spans[#spans + 1] = { start = tonumber(start), over = tonumber(over) }
  end
  return spans
end

lib.history_write_spans = function(uh, spans)
  local texts = {}
  for i, span in ipairs(spans) do texts[i] = text(span.start) .. ':' .. text(span.over) end
  if #texts > 0 then call('HSET', key('streamheads', uh), 's', table.concat(texts, ' '))
  else call('HDEL', key('streamheads', uh), 's') end
end

-- Returns the last span that starts at this time or earlier; nil if there is none.
lib.history_span_of = function(spans, at)
  for i = #spans, 1, -1 do
    if spans[i].start <= at then return spans[i] end
  end
  return nil
end

-- Returns the start of the span for a row of this time. Opens the span if it does not exist. Moves its time of removal
-- if the row is kept longer, because RETENTION_MS was raised.
lib.history_open_span = function(row, at)
  local spans, length = lib.history_spans(row.uh), lib.history_span_length(row.retentionMs)
  local span, start = lib.history_span_of(spans, at), at - at % length
  if span and span.start >= start and span.over >= at + row.retentionMs then return span.start end
  if not span or span.start < start then
    lib.history_sweep_spans(3)
    spans, span = lib.history_spans(row.uh), { start = start }
    spans[#spans + 1] = span
    table.sort(spans, function(a, b) return a.start < b.start end)
  end
  span.over = start + length + row.retentionMs
  lib.history_write_spans(row.uh, spans)
  call('ZADD', key('rowspans'), text(span.over), row.uh .. '\0' .. text(span.start))
  return span.start
end

-- Removes at most `count` spans whose time is over.
lib.history_sweep_spans = function(count)
  for _, member in ipairs(call('ZRANGEBYSCORE', key('rowspans'), '-inf', text(now), 'LIMIT', 0, count)) do
    local uh, start = string.match(member, '^(.*)%z(.*)$')
    local left = {}
    for _, span in ipairs(lib.history_spans(uh)) do
      if text(span.start) ~= start then left[#left + 1] = span end
    end
    call('UNLINK', key('cmdrows', uh, start))
    lib.history_write_spans(uh, left)
    call('ZREM', key('rowspans'), member)
  end
end

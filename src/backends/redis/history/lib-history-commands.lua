-- Maintains the index that finds a command's rows in history. A row's place is its time, the suffix of its stream and
-- its seq. The HASH `cmdrows` of a user and a span of time has, for each command, its first places in that span as one
-- text. The further places of a command are in a ZSET of its own, `cmdmore`. A place is removed with its row, except if
-- the row is removed because of its age: then the span is removed soon.
-- needs: lib-history, lib-history-blocks, lib-history-spans, lib-shares

-- The most places that the HASH has of a command and span.
lib.history_few = 16
-- The most places that the ZSET of a command has.
lib.history_command_rows = 100000
-- The most rows of which one call removes the places, give or take the rows of one read. Each takes 10 to 20 us, and
-- Redis answers no other request while a call runs.
lib.history_places_most = 512
lib.history_places_left = lib.history_places_most

lib.history_more_key = function(uh, commandId)
  return key('cmdmore', uh .. ':' .. redis.sha1hex(commandId))
end

-- Returns a place as it is in the HASH, and as it is in the ZSET.
lib.history_few_place = function(at, suffix, seq)
  return text(at) .. '\0' .. suffix .. '\0' .. text(seq) .. '\0'
end
lib.history_more_place = function(at, suffix, seq)
  return lib.history_pad(at) .. '\0' .. suffix .. '\0' .. lib.history_pad(seq)
end

-- Declares what an act will read if it appends a row of a command to this stream.
lib.history_want = function(uh, sth, commandId, retentionMs)
  want(key('streamheads', uh), sth, 't', 's')
  lib.shares_want('h', uh)
  want(lib.history_span_key(uh, lib.history_span_start(now, retentionMs)), commandId)
end

-- Adds the place of a row to the index, if it is a command's row.
lib.history_by_command = function(row, at, seq)
  if not row.commandId then return end
  local name = lib.history_span_key(row.uh, lib.history_open_span(row, at))
  local places, count = get(name, row.commandId) or '', 0
  if places ~= '' then count = select(2, string.gsub(places, '%z', '')) end
  if count >= 3 * lib.history_few then return lib.history_more(row, at, seq) end
  set(name, row.commandId, places .. lib.history_few_place(at, row.suffix, seq))
end

-- Adds the place of a row to the ZSET of its command.
lib.history_more = function(row, at, seq)
  local name = lib.history_more_key(row.uh, row.commandId)
  call('ZADD', name, 0, lib.history_more_place(at, row.suffix, seq))
  call('PEXPIRE', name, text(row.retentionMs + lib.history_grace))
  local count = call('ZCARD', name)
  local oldest = lib.history_pad(math.max(0, now - row.retentionMs + 1))
  if count > 100 then call('ZREMRANGEBYLEX', name, '-', '(' .. oldest) end
  if count > lib.history_command_rows then call('ZREMRANGEBYRANK', name, 0, count - lib.history_command_rows - 1) end
end

-- Removes the places of the rows in a stream's oldest blocks, which the caller is about to remove. `to`: the last of
-- these blocks, as the end of an XRANGE. `row`: its user, suffix and hashes, and its `retentionMs` if blocks may be
-- removed because of their age. A call removes the places of about `history_places_most` rows. Those that are left name
-- no message, so readers skip them, and they go with their span.
lib.history_remove_places = function(row, to)
  local from = row.retentionMs and text(math.max(0, now - row.retentionMs + 1)) or '-'
  for _ = 1, lib.history_ahead_most do
    if lib.history_places_left <= 0 then return end
    local blocks = call('XRANGE', key('stream', row.sth), from, to, 'COUNT', lib.history_ahead)
    local rows = lib.history_indexed_rows(row, blocks)
    lib.history_remove_places_of(row, rows)
    lib.history_places_left = lib.history_places_left - #rows
    if #blocks < lib.history_ahead then return end
    from = '(' .. blocks[#blocks][1]
  end
end

-- Returns the rows of these blocks that the index has: of each the command, time, seq and the HASH of its span. Leaves
-- out spans that are over. They are only removed: if this call removes one, a later write would create it again.
lib.history_indexed_rows = function(row, blocks)
  local found, spans = {}, lib.history_spans(row.uh)
  for _, entry in ipairs(blocks) do
    local at, seq = string.match(entry[1], '^(%d+)-(%d+)$')
    at, seq = tonumber(at), tonumber(seq)
    local span = lib.history_span_of(spans, at)
    local name = span and span.over > now and lib.history_span_key(row.uh, span.start)
    for commandId in string.gmatch(entry[2][2], lib.history_command_of_row) do
      if name and commandId ~= '' then
        found[#found + 1] = { commandId = commandId, at = at, seq = seq, name = name }
      end
      seq = seq + 1
    end
  end
  return found
end

-- Removes the places of these rows. Grouped acts read the texts of all of them with one command for each span.
lib.history_remove_places_of = function(row, rows)
  if grouping then
    for _, indexed in ipairs(rows) do want(indexed.name, indexed.commandId) end
    fetchWanted()
  end
  for _, indexed in ipairs(rows) do lib.history_remove_place(row, indexed) end
end

lib.history_remove_place = function(row, indexed)
  local name, commandId, at, seq = indexed.name, indexed.commandId, indexed.at, indexed.seq
  local places = get(name, commandId) or ''
  local first, last = string.find(places, lib.history_few_place(at, row.suffix, seq), 1, true)
  if not first then
    call('ZREM', lib.history_more_key(row.uh, commandId), lib.history_more_place(at, row.suffix, seq))
    return
  end
  local left = string.sub(places, 1, first - 1) .. string.sub(places, last + 1)
  set(name, commandId, left ~= '' and left)
end

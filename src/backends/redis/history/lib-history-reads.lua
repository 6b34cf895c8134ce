-- Functions that the acts which read history share.
-- needs: lib-history, lib-history-blocks, lib-history-commands, lib-history-spans

-- Decodes the position of a message in history, as its deduplication mark has it. Returns {seq, at}.
lib.history_placed = function(place)
  local at, seq = string.match(place, '^(%d+)-(%d+)$')
  return { seq, at }
end

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

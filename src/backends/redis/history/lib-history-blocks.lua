-- Writes the rows of a stream in blocks: one entry of the STREAM has the rows of one call, which have the same
-- time. The id of an entry is `<at>-<seq of its first row>`. It has one field: its name is the number of rows, and its
-- value the rows one after the other. Each row is its fields in this order, each followed by a NUL: id, kind, clientId,
-- instanceId, commandId, traceId, parentSpanId, bytes of the payload, error (JSON), spill (JSON), payload.
-- history/rows.ts reads the same format.
-- needs: lib-history

-- The most rows of a block, and their most bytes: readers read whole blocks.
lib.history_block_rows = 64
lib.history_block_bytes = 32768
-- How many ids of blocks one read ahead gets, and how many such reads one call makes at most.
lib.history_ahead = 16
lib.history_ahead_most = 32

lib.history_text = function(row)
  local nul = '\0'
  return row.id .. nul .. row.kind .. nul .. (row.clientId or '') .. nul .. (row.instanceId or '') .. nul ..
    (row.commandId or '') .. nul .. (row.traceId or '') .. nul .. (row.parentSpanId or '') .. nul ..
    (row.bytes or text(#(row.payload or ''))) .. nul .. (row.error or '') .. nul .. (row.spill or '') .. nul ..
    (row.payload or '') .. nul
end

-- Returns for each row of an entry, the oldest first, whether it has a payload or a reference to one. A row of a link
-- history has neither: its last field has the details of the link.
lib.history_payloads = function(entry)
  local found = {}
  local pattern = '%Z*%z(%Z*)%z' .. string.rep('%Z*%z', 7) .. '(%Z*)%z(%Z*)%z'
  for kind, spill, payload in string.gmatch(entry[2][2], pattern) do
    found[#found + 1] = string.sub(kind, 1, 5) ~= 'link_' and (spill ~= '' or payload ~= '')
  end
  return found
end

-- Returns the seq of the first row of the block with this id.
lib.history_first = function(id)
  return tonumber(string.match(id, '%d+$'))
end

-- Writes the rows that this call has appended to a stream, and the head of the stream.
lib.history_write = function(row, info)
  local rows, stream = info.rows, key('stream', row.sth)
  local oldest, more = lib.history_trim(row, info)
  local first, bytes, before = 1, 0, info.seq - #rows
  for i = 1, #rows do
    bytes = bytes + #rows[i]
    if i == #rows or i - first + 1 >= lib.history_block_rows or bytes + #rows[i + 1] > lib.history_block_bytes then
      local id, block = text(info.at) .. '-' .. text(before + first), table.concat(rows, '', first, i)
      if oldest then call('XADD', stream, 'MINID', oldest, id, text(i - first + 1), block)
      else call('XADD', stream, id, text(i - first + 1), block) end
      first, bytes, oldest = i + 1, 0, false
    end
  end
  -- The oldest row within the bound may be in a block that was written just now.
  oldest = more and lib.history_trim(row, info)
  if oldest then call('XTRIM', stream, 'MINID', oldest) end
  info.rows, info.listed = {}, false
  lib.history_renew(row, info)
  lib.history_note(row, info)
end

-- Finds the block that has the oldest row within the stream's bound. Returns its id if blocks before it can be removed,
-- else false. The second result is true if the search ended early, so that the block may be a later one. A block is
-- removed once all of its rows are beyond the bound. Until then readers skip the rows beyond the bound.
lib.history_trim = function(row, info)
  local oldest = info.seq - row.streamMessages + 1
  if oldest < info.next then return false, false end
  local heads, field = key('streamheads', row.uh), 'c' .. row.sth
  local known, keep = get(heads, field)[1] or '', false
  for _ = 1, lib.history_ahead_most do
    for id in string.gmatch(known, '%S+') do
      local seq = lib.history_first(id)
      if seq > oldest then
        info.next = seq
        return keep, false
      end
      keep = id
    end
    local ahead = lib.history_look_ahead(row, keep or '-')
    if ahead == keep or ahead == '' then return keep, true end
    known = ahead
    set(heads, field, known)
  end
  return keep, false
end

-- Returns the ids of the next blocks, starting with the block at `from`, the oldest first.
lib.history_look_ahead = function(row, from)
  local ids = {}
  for i, entry in ipairs(call('XRANGE', key('stream', row.sth), from, '+', 'COUNT', lib.history_ahead)) do ids[i] = entry[1] end
  return table.concat(ids, ' ')
end

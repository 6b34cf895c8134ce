-- Writes the rows of a stream in blocks: one entry of the STREAM has the rows of one call, which have the same
-- time. The id of an entry is `<at>-<seq of its first row>`. It has one field: its name is the number of rows, and its
-- value the rows one after the other. Each row is its fields in this order, each followed by a NUL: id, kind, clientId,
-- instanceId, commandId, traceId, parentSpanId, bytes of the payload, error (JSON), spill (JSON), payload.
-- history/rows.ts reads the same format.
-- needs: lib-history, lib-history-bytes, lib-history-commands

-- The most rows of a block, and their most bytes: readers read whole blocks.
lib.history_block_rows = 64
lib.history_block_bytes = 32768
-- How many ids of blocks one read ahead gets, and how many such reads one call makes at most.
lib.history_ahead = 16
lib.history_ahead_most = 32

-- A pattern that matches each row of a block, and captures the command's id.
lib.history_command_of_row = string.rep('%Z*%z', 4) .. '(%Z*)%z' .. string.rep('%Z*%z', 6)

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

-- Writes the rows that this call has appended to a stream, and the head of the stream.
lib.history_write = function(row, info)
  local rows, stream = info.rows, key('stream', row.sth)
  local before, bytes = info.bytes, 0
  local bound = lib.history_bound(row, info)
  local oldest, more = lib.history_trim(row, info, bound)
  local first, size, seq = 1, 0, info.seq - #rows
  for i = 1, #rows do
    size, bytes = size + #rows[i], bytes + #rows[i]
    if i == #rows or i - first + 1 >= lib.history_block_rows or size + #rows[i + 1] > lib.history_block_bytes then
      local id, block = text(info.at) .. '-' .. text(seq + first), table.concat(rows, '', first, i)
      if oldest then call('XADD', stream, 'MINID', oldest, id, text(i - first + 1), block)
      else call('XADD', stream, id, text(i - first + 1), block) end
      first, size, oldest = i + 1, 0, false
    end
  end
  info.bytes = info.bytes + bytes
  -- The oldest row within the bound may be in a block that was written just now.
  oldest = more and lib.history_trim(row, info, bound)
  if oldest then call('XTRIM', stream, 'MINID', oldest) end
  info.rows, info.listed = {}, false
  lib.history_count(row, info.bytes - before)
  lib.history_renew(row, info)
  lib.history_note(row, info)
end

-- Up to about this many rows beyond the limit on rows stay for a while, so that blocks are removed together.
lib.history_slack = 256

-- Decides which blocks of a stream are removed when rows are appended. Blocks whose rows are all beyond the limit on
-- rows are removed together, once they may have `history_slack` rows or a thirty-second of the limit, whichever is
-- less. Blocks that are too old are removed from time to time. Readers do not show the rows that stay beyond the limit.
lib.history_bound = function(row, info)
  local oldest, before = info.seq - row.streamMessages + 1, -1
  local slack = math.min(lib.history_slack, math.floor(row.streamMessages / 32))
  if info.renewed > 0 and lib.history_is_stale(row, info) then before = now - row.retentionMs end
  return {
    any = oldest >= info.next + slack or before >= 0,
    -- `at`: the time of a block; `upcoming`: the seq of the first row of the block after it.
    beyond = function(at, upcoming) return upcoming <= oldest or at <= before end,
  }
end

-- Finds the oldest blocks of a stream for which `bound.beyond` returns true, subtracts them from the counts of the
-- stream and removes their rows from the index of commands. The last block of the stream is never one of them. Returns
-- the id of the oldest block that stays if the caller must remove the blocks before it, else false. The second result
-- says whether `beyond` may return true for later blocks too.
lib.history_trim = function(row, info, bound)
  local oldest, more = lib.history_find_beyond(row, info, bound)
  if oldest then lib.history_remove_places(row, '(' .. oldest) end
  return oldest, more
end

-- Finds and subtracts these blocks for history_trim. Returns the same two results.
lib.history_find_beyond = function(row, info, bound)
  if not bound.any then return false, false end
  local heads, field = key('streamheads', row.uh), 'c' .. row.sth
  local known, keep, trimmed = get(heads, field) or '', nil, false
  for _ = 1, lib.history_ahead_most do
    for at, seq, bytes in string.gmatch(known, '(%d+)%-(%d+):(%d+)') do
      local block = { at = tonumber(at), seq = tonumber(seq), bytes = tonumber(bytes), id = at .. '-' .. seq }
      if keep and block.seq > keep.seq and block.seq >= info.next then
        if not bound.beyond(keep.at, block.seq) then
          info.next = block.seq
          return trimmed and keep.id, false
        end
        trimmed, info.bytes, info.next = true, info.bytes - keep.bytes, block.seq + 1
        info.droppedAt = keep.at
      end
      keep = block
    end
    local ahead, count = lib.history_look_ahead(row, keep and keep.id or '-')
    if count == 0 or (keep and count == 1) then return trimmed and keep.id, true end
    known = ahead
    set(heads, field, known)
  end
  return trimmed and keep and keep.id, false
end

-- Reads the next blocks, starting with the block at `from`, the oldest first. Returns one text with `<id>:<bytes>` for
-- each, separated by blanks, and the number of blocks.
lib.history_look_ahead = function(row, from)
  local found = {}
  for i, entry in ipairs(call('XRANGE', key('stream', row.sth), from, '+', 'COUNT', lib.history_ahead)) do
    found[i] = entry[1] .. ':' .. text(#entry[2][2])
  end
  return table.concat(found, ' '), #found
end

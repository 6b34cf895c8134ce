-- Maintains the index that finds a command's rows in history. A row's place is its time, the suffix of its stream and
-- its seq. The HASH `cmdrows` of a user and a span of time has, for each command, its first places in that span as one
-- text. The further places of a command are in a ZSET of its own, `cmdmore`.
-- needs: lib-history, lib-shares
lib.history_span = 43200000
-- The most places that the HASH has of a command and span.
lib.history_few = 16
-- The most places that the ZSET of a command has.
lib.history_command_rows = 100000

lib.history_places_key = function(uh, span)
  return key('cmdrows', uh, text(span))
end

lib.history_more_key = function(uh, commandId)
  return key('cmdmore', uh .. ':' .. redis.sha1hex(commandId))
end

-- Declares what an act will read if it appends a row of a command to this stream.
lib.history_want = function(uh, sth, commandId)
  want(key('streamheads', uh), sth, 't', 's')
  lib.shares_want('h', uh)
  want(lib.history_places_key(uh, math.floor(now / lib.history_span)), commandId)
end

-- Adds the place of a row to the index, if it is a command's row.
lib.history_by_command = function(row, at, seq)
  if not row.commandId then return end
  local span = math.floor(at / lib.history_span)
  local name = lib.history_places_key(row.uh, span)
  lib.history_open_span(row, span)
  local places, count = get(name, row.commandId) or '', 0
  if places ~= '' then count = select(2, string.gsub(places, '%z', '')) end
  if count >= 3 * lib.history_few then return lib.history_more(row, at, seq) end
  set(name, row.commandId, places .. text(at) .. '\0' .. row.suffix .. '\0' .. text(seq) .. '\0')
end

-- Registers a span of a user when the user's first row in it is appended, and sets when the span is removed.
lib.history_open_span = function(row, span)
  local heads = key('streamheads', row.uh)
  if tonumber(get(heads, 's') or 0) >= span then return end
  set(heads, 's', text(span))
  local over = (span + 1) * lib.history_span + row.retentionMs
  call('ZADD', key('rowspans'), text(over), row.uh .. '\0' .. text(span))
  expire(lib.history_places_key(row.uh, span), over + lib.history_grace - now)
end

-- Adds the place of a row to the ZSET of its command.
lib.history_more = function(row, at, seq)
  local name = lib.history_more_key(row.uh, row.commandId)
  call('ZADD', name, 0, lib.history_pad(at) .. '\0' .. row.suffix .. '\0' .. lib.history_pad(seq))
  call('PEXPIRE', name, text(row.retentionMs + lib.history_grace))
  local count = call('ZCARD', name)
  if count > 100 then call('ZREMRANGEBYLEX', name, '-', '(' .. lib.history_pad(math.max(0, now - row.retentionMs + 1))) end
  if count > lib.history_command_rows then call('ZREMRANGEBYRANK', name, 0, count - lib.history_command_rows - 1) end
end

-- Removes at most `count` spans whose time is over.
lib.history_sweep_spans = function(count)
  for _, member in ipairs(call('ZRANGEBYSCORE', key('rowspans'), '-inf', text(now), 'LIMIT', 0, count)) do
    local uh, span = string.match(member, '^(.*)%z(.*)$')
    call('UNLINK', lib.history_places_key(uh, tonumber(span)))
    call('ZREM', key('rowspans'), member)
  end
end

-- How rows of connections end: what takes them over, marks them as down, and forgets them. Each link's end is kept once in the link history of
-- its user: by the act that marks the row as down, replaces it, or forgets it.
-- needs: lib-connections, lib-links
-- Why the link of a row has ended when a newer one is bound now: `replaced` where it was still up.
lib.connections_end_cause = function(row)
  local silent = now - tonumber(row.lastSeenAt) >= lib.connections_dead
  return row.disconnectCause or (silent and 'heartbeat_lost' or 'replaced')
end

-- The instances before the one that takes over from this row, the latest first, a newline between two: instance, node, when (ms) and why its
-- link had gone down by then (`replaced` where it was still up), NUL between. At most as many (limits.ts: PREDECESSORS).
lib.connections_predecessors_most = 10
lib.connections_predecessors = function(previous)
  local cause = lib.connections_end_cause(previous)
  local found = { table.concat({ previous.instanceId, previous.nodeId, text(now), cause }, '\0') }
  for one in string.gmatch(previous.predecessors or '', '[^\n]+') do
    if #found == lib.connections_predecessors_most then break end
    found[#found + 1] = one
  end
  return table.concat(found, '\n')
end

-- Drops what the client reported; how many rows that were.
lib.connections_drop = function(user, client, ch)
  local from = '[' .. user .. '\0' .. client .. '\0'
  local to = '(' .. user .. '\0' .. client .. '\1'
  call('UNLINK', key('ctx', ch), key('win', ch), key('ctxwin', ch))
  return call('ZREMRANGEBYLEX', key('ctxs'), from, to) + call('ZREMRANGEBYLEX', key('wins'), from, to)
end

-- What of a client's row says how its link ends, without what the client advertises; nil where there is no row.
lib.connections_brief_fields = {
  'userId', 'clientId', 'instanceId', 'nodeId', 'epoch', 'clientType', 'connectedAt', 'lastSeenAt', 'disconnectedAt', 'links',
}
lib.connections_brief = function(ch)
  local row = {}
  for i, value in ipairs(call('HMGET', key('conn', ch), unpack(lib.connections_brief_fields))) do
    row[lib.connections_brief_fields[i]] = value or nil
  end
  return row.userId and row
end

-- Forgets a row and all that hangs on it; how many rows of contexts and windows that were.
lib.connections_remove = function(user, client, ch)
  lib.connections_end_unclosed(ch)
  local dropped = lib.connections_drop(user, client, ch)
  call('UNLINK', key('conn', ch))
  call('ZREM', key('conns'), user .. '\0' .. client)
  call('ZREM', key('conngone'), user .. '\0' .. client .. '\0' .. ch)
  if call('ZLEXCOUNT', key('conns'), '[' .. user .. '\0', '(' .. user .. '\1') == 0 then
    call('ZREM', key('connusers'), user)
  end
  return dropped
end

-- Keeps the end of a link that nobody closed, before its row is forgotten.
lib.connections_end_unclosed = function(ch)
  local row = lib.connections_brief(ch)
  if not row or row.disconnectedAt then return end
  local at, why = lib.connections_lost(row.nodeId, row.lastSeenAt)
  if at then lib.links_ended(row, why or 'heartbeat_lost', at) end
end

-- Forgets what is due, at most `limit` rows (64 unless told otherwise); true when more is left.
lib.connections_sweep = function(limit)
  limit = limit or 64
  local due = call('ZRANGEBYSCORE', key('conngone'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  local dropped = 0
  for i, member in ipairs(due) do
    if i > limit or dropped > 2000 then return true end
    local user, client, ch = string.match(member, '^(.-)%z(.-)%z(.+)$')
    dropped = dropped + lib.connections_remove(user, client, ch)
  end
  return false
end

-- The row as it reads now, loss by lease included; nil where there is none, or none any more.
lib.connections_load = function(ch)
  local row = hash(key('conn', ch))
  if not row then return nil end
  local at = tonumber(row.disconnectedAt)
  if not at then
    local cause
    at, cause = lib.connections_lost(row.nodeId, row.lastSeenAt)
    if cause then
      row.disconnectedAt = text(at)
      row.disconnectCause = cause
    end
  end
  if at and at + lib.connections_forget <= now then
    lib.connections_remove(row.userId, row.clientId, ch)
    return nil
  end
  return row
end

-- Marks the row of this client as down, only under this epoch (nil: whatever it is); true if it did. A link that was lost already, by its
-- node's lease or by silence, keeps that time, and the first of them its cause.
lib.connections_lose = function(ch, epoch, cause)
  local name = key('conn', ch)
  local row = lib.connections_brief(ch)
  if not row or row.disconnectedAt then return false end
  if epoch and tonumber(epoch) ~= tonumber(row.epoch) then return false end
  local at, why = lib.connections_lost(row.nodeId, row.lastSeenAt)
  at = at or now
  if at + lib.connections_forget <= now then
    lib.connections_remove(row.userId, row.clientId, ch)
    return false
  end
  call('HSET', name, 'disconnectedAt', text(at), 'disconnectCause', why or cause)
  lib.connections_due(row.userId, row.clientId, ch, at + lib.connections_forget)
  lib.links_ended(row, why or cause, at)
  return true
end

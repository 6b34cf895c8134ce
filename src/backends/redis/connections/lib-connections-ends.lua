-- Ends connections: replaces their rows, marks them as down, and forgets them. The act that does so also adds the end
-- of the link to the link history of its user, so that each end is there once.
-- needs: lib-connections, lib-links

-- Returns why the link of a row ends when a newer one is bound now: `replaced` if it was still up.
lib.connections_end_cause = function(row)
  local silent = now - tonumber(row.lastSeenAt) >= lib.connections_dead
  return row.disconnectCause or (silent and 'heartbeat_lost' or 'replaced')
end

-- The maximum number of earlier instances that a client's row lists (limits.ts: PREDECESSORS).
lib.connections_predecessors_most = 10
-- Returns the list for the instance that replaces this row, the latest first, separated by newlines. Each item has,
-- separated by NULs: instance, node, when it was replaced (ms), and why its link ended (`replaced` if it was still up
-- when it was replaced).
lib.connections_predecessors = function(previous)
  local cause = lib.connections_end_cause(previous)
  local found = { table.concat({ previous.instanceId, previous.nodeId, text(now), cause }, '\0') }
  for one in string.gmatch(previous.predecessors or '', '[^\n]+') do
    if #found == lib.connections_predecessors_most then break end
    found[#found + 1] = one
  end
  return table.concat(found, '\n')
end

-- Removes the contexts and windows that the client reported. Returns how many it removed.
lib.connections_drop = function(user, client, ch)
  local from = '[' .. user .. '\0' .. client .. '\0'
  local to = '(' .. user .. '\0' .. client .. '\1'
  call('UNLINK', key('ctx', ch), key('win', ch), key('ctxwin', ch))
  return call('ZREMRANGEBYLEX', key('ctxs'), from, to) + call('ZREMRANGEBYLEX', key('wins'), from, to)
end

-- The fields of a client's row that the end of its link needs, without what the client advertises. `connections_brief`
-- returns nil if there is no row.
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

-- Forgets a row, with the contexts and windows of the client. Returns how many contexts and windows it removed.
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

-- Adds the end of a link that was never closed to the link history, before its row is forgotten.
lib.connections_end_unclosed = function(ch)
  local row = lib.connections_brief(ch)
  if not row or row.disconnectedAt then return end
  local at, why = lib.connections_lost(row.nodeId, row.lastSeenAt)
  if at then lib.links_ended(row, why or 'heartbeat_lost', at) end
end

-- Forgets the rows that are due to be forgotten: at most `limit`, 64 by default. Returns true if more are left.
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

-- Reads the row of a client as it is now: marked as down if its node's lease is over. Returns nil if there is none, or
-- it is due to be forgotten.
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

-- Marks the row of this client as down, if its link has this epoch (nil: any epoch). Returns true if it did. If the
-- link was lost before, because its node's lease ended or because it was silent, the row gets the time of that loss. If
-- the lease ended, it also gets that cause. `code`: that of the client's close frame; nil if it sent none.
lib.connections_lose = function(ch, epoch, cause, code)
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
  if why then code = nil end
  if code then call('HSET', name, 'closeCode', code) end
  lib.connections_due(row.userId, row.clientId, ch, at + lib.connections_forget)
  lib.links_ended(row, why or cause, at, code)
  return true
end

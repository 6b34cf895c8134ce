-- What is shared about connections and what hangs on them. A link that nobody closed is lost `dead` ms after its last sign of life; a
-- row is forgotten `forget` ms after its link was lost (limits.ts: DEAD_MS, FORGET_MS). Keys outlive their rows by far: what is past its
-- time is told by stamps, and the expiry only sweeps up behind a deployment that is gone.
lib.connections_dead = 60000
lib.connections_forget = 60000
lib.connections_ttl = 4 * 3600000
lib.connections_renew = 3600000

-- When a link that is not marked as down was lost all the same: by its node's lease, or by silence; nil while it is up.
lib.connections_lost = function(node, lastSeenAt)
  local silent = tonumber(lastSeenAt) + lib.connections_dead
  local lease = tonumber(call('ZSCORE', key('nodes'), node) or nil)
  if lease and lease <= now then
    local at = math.max(lease, tonumber(lastSeenAt))
    if at < silent then return at, 'node_lost' end
  end
  if silent <= now then return silent end
  return nil
end

-- The instances before the one that takes over from this row, the latest first, a newline between two: instance, node, when (ms) and why its
-- link had gone down by then (`replaced` where it was still up), NUL between. At most as many (limits.ts: PREDECESSORS).
lib.connections_predecessors_most = 10
lib.connections_predecessors = function(previous)
  local silent = now - tonumber(previous.lastSeenAt) >= lib.connections_dead
  local cause = previous.disconnectCause or (silent and 'heartbeat_lost' or 'replaced')
  local found = { table.concat({ previous.instanceId, previous.nodeId, text(now), cause }, '\0') }
  for one in string.gmatch(previous.predecessors or '', '[^\n]+') do
    if #found == lib.connections_predecessors_most then break end
    found[#found + 1] = one
  end
  return table.concat(found, '\n')
end

-- Sets when a row is forgotten.
lib.connections_due = function(user, client, ch, at)
  call('ZADD', key('conngone'), text(at), user .. '\0' .. client .. '\0' .. ch)
end

-- Lets the keys of a client live on.
lib.connections_renewed = function(ch)
  for _, kind in ipairs({ 'conn', 'ctx', 'win', 'ctxwin' }) do
    call('PEXPIRE', key(kind, ch), lib.connections_ttl)
  end
end

-- Drops what the client reported; how many rows that were.
lib.connections_drop = function(user, client, ch)
  local from = '[' .. user .. '\0' .. client .. '\0'
  local to = '(' .. user .. '\0' .. client .. '\1'
  call('UNLINK', key('ctx', ch), key('win', ch), key('ctxwin', ch))
  return call('ZREMRANGEBYLEX', key('ctxs'), from, to) + call('ZREMRANGEBYLEX', key('wins'), from, to)
end

-- Forgets a row and all that hangs on it; how many rows of contexts and windows that were.
lib.connections_remove = function(user, client, ch)
  local dropped = lib.connections_drop(user, client, ch)
  call('UNLINK', key('conn', ch))
  call('ZREM', key('conns'), user .. '\0' .. client)
  call('ZREM', key('conngone'), user .. '\0' .. client .. '\0' .. ch)
  if call('ZLEXCOUNT', key('conns'), '[' .. user .. '\0', '(' .. user .. '\1') == 0 then
    call('ZREM', key('connusers'), user)
  end
  return dropped
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
  local row = call('HMGET', name, 'userId', 'clientId', 'nodeId', 'epoch', 'lastSeenAt', 'disconnectedAt')
  if not row[1] or row[6] then return false end
  if epoch and tonumber(epoch) ~= tonumber(row[4]) then return false end
  local at, why = lib.connections_lost(row[3], row[5])
  at = at or now
  if at + lib.connections_forget <= now then
    lib.connections_remove(row[1], row[2], ch)
    return false
  end
  call('HSET', name, 'disconnectedAt', text(at), 'disconnectCause', why or cause)
  lib.connections_due(row[1], row[2], ch, at + lib.connections_forget)
  return true
end

-- Of a link that is up under this epoch: the fields asked for; nil otherwise. The lease is not looked at: it is the link's own node that
-- asks, and after a pause of the store its sign of life may come before its beat.
lib.connections_up = function(ch, epoch, fields)
  local row = call('HMGET', key('conn', ch), 'epoch', 'disconnectedAt', 'lastSeenAt', 'userId', 'clientId', unpack(fields))
  if row[1] ~= epoch or row[2] or now - tonumber(row[3]) >= lib.connections_dead then return nil end
  local found = { userId = row[4], clientId = row[5] }
  for i, field in ipairs(fields) do found[field] = row[5 + i] end
  return found
end

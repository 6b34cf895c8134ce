-- Functions that the acts on connections share. A link that was not closed is lost `dead` ms after its last sign of
-- life. A row is forgotten `forget` ms after its link was lost (limits.ts: DEAD_MS, FORGET_MS). The times in a row
-- decide this. The keys last much longer, and expire only after the whole deployment is gone.
lib.connections_dead = 60000
lib.connections_forget = 60000
lib.connections_ttl = 4 * 3600000
lib.connections_renew = 3600000

-- Returns when a link was lost that is not marked as down. It is lost if its node's lease ended, or if it was silent.
-- Returns nil while the link is up. The second result is the cause if the lease ended.
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

-- Sets when a row is forgotten.
lib.connections_due = function(user, client, ch, at)
  call('ZADD', key('conngone'), text(at), user .. '\0' .. client .. '\0' .. ch)
end

-- Renews the expiry of a client's keys.
lib.connections_renewed = function(ch)
  for _, kind in ipairs({ 'conn', 'ctx', 'win', 'ctxwin' }) do
    call('PEXPIRE', key(kind, ch), lib.connections_ttl)
  end
end

-- Returns the requested fields of a link that is up under this epoch; else nil. Does not check the lease: only the
-- link's own node calls this, and after a pause of the store the link's sign of life may come before the node's beat.
lib.connections_up = function(ch, epoch, fields)
  local row = call('HMGET', key('conn', ch), 'epoch', 'disconnectedAt', 'lastSeenAt', 'userId', 'clientId', unpack(fields))
  if row[1] ~= epoch or row[2] or now - tonumber(row[3]) >= lib.connections_dead then return nil end
  local found = { userId = row[4], clientId = row[5] }
  for i, field in ipairs(fields) do found[field] = row[5 + i] end
  return found
end

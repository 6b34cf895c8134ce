-- Connections of clients: who is connected where, what they advertise, how their links ended, and how often they
-- reconnect.

-- library: lib-connections-ends
-- Ends connections: replaces their rows, marks them as down, and forgets them. The act that ends a link also adds the
-- end to the link history of the user, so that the history contains each end once.
-- needs: lib-connections, lib-links

-- Returns why the link of a row ended, if a newer link is bound now: `replaced` if it was still up.
lib.connections_end_cause = function(row)
  local silent = now - tonumber(row.lastSeenAt) >= lib.connections_dead
  return row.disconnectCause or (silent and 'heartbeat_lost' or 'replaced')
end

-- The most earlier instances that a client's row lists (limits.ts: PREDECESSORS).
lib.connections_predecessors_most = 10
-- Returns the list of earlier instances for the instance that replaces this row: latest first, separated by newlines.
-- Each item contains, separated by NULs: instance, node, when it was replaced (ms), and why its link ended (`replaced`
-- if it was up until then).
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
  call('UNLINK', key('ctx', ch), key('ctxleft', ch), key('win', ch), key('ctxwin', ch))
  return call('ZREMRANGEBYLEX', key('ctxs'), from, to) + call('ZREMRANGEBYLEX', key('wins'), from, to)
end

-- The fields of a client's row that are needed when its link ends, without the advertised data. `connections_brief`
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

-- Returns the link of a client (false if there is none), and the number of other fields in the HASH of its live
-- commands.
lib.connections_queue = function(ch)
  local link = call('HGET', key('client', ch), 'b')
  return link, call('HLEN', key('client', ch)) - (link and 1 or 0)
end

-- Forgets a row with the contexts and windows of the client. Returns how many contexts and windows were removed.
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

-- Before a row is forgotten, adds the end of its link to the link history, if the link was never closed.
lib.connections_end_unclosed = function(ch)
  local row = lib.connections_brief(ch)
  if not row or row.disconnectedAt then return end
  local at, why = lib.connections_lost(row.nodeId, row.lastSeenAt)
  if at then lib.links_ended(row, why or 'heartbeat_lost', at) end
end

-- Forgets at most `limit` of the rows that are due. Stops once more than 2000 of their contexts and windows were
-- removed. Returns true if more rows are due.
lib.connections_sweep = function(limit)
  local due = call('ZRANGEBYSCORE', key('conngone'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  local dropped = 0
  for i, member in ipairs(due) do
    if i > limit or dropped > 2000 then return true end
    local user, client, ch = string.match(member, '^(.-)%z(.-)%z(.+)$')
    dropped = dropped + lib.connections_remove(user, client, ch)
  end
  return false
end

-- Returns the present row of a client, marked as down if its node's lease is over. Returns nil if there is no row, or
-- if it is due to be forgotten.
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

-- Marks the row of a client as down, if its link has this epoch (nil: any epoch). Returns true if the row was marked.
-- If the link was lost before, because its node's lease ended or because it was silent, the row gets the time of that
-- loss; if the lease ended, it also gets that cause. `code`: the code of the client's close frame; nil if the client
-- sent none.
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

-- library: lib-connections
-- Functions that the acts on connections share. A link that is never closed counts as lost `dead` ms after its last
-- sign of life. A row is forgotten `forget` ms after its link was lost (limits.ts: DEAD_MS, FORGET_MS). The times in a
-- row decide this. Keys exist much longer; their expiry only matters after the whole deployment is gone.
lib.connections_dead = 60000
lib.connections_forget = 60000
lib.connections_ttl = 4 * 3600000
lib.connections_renew = 3600000

-- Returns when a link that is not marked as down was lost: when its node's lease ended, or once it was silent for too
-- long. Returns nil while the link is up. The second result is the cause, if the lease ended.
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
  for _, kind in ipairs({ 'conn', 'ctx', 'ctxleft', 'win', 'ctxwin' }) do
    call('PEXPIRE', key(kind, ch), lib.connections_ttl)
  end
end

-- Returns the requested fields of a link that is up with this epoch; otherwise nil. Does not check the lease: only the
-- link's own node calls this, and after a pause of the store a sign of life of the link may arrive before the node's
-- heartbeat.
lib.connections_up = function(ch, epoch, fields)
  local row = call('HMGET', key('conn', ch), 'epoch', 'disconnectedAt', 'lastSeenAt', 'userId', 'clientId', unpack(fields))
  if row[1] ~= epoch or row[2] or now - tonumber(row[3]) >= lib.connections_dead then return nil end
  local found = { userId = row[4], clientId = row[5] }
  for i, field in ipairs(fields) do found[field] = row[5 + i] end
  return found
end

-- library: lib-links
-- Writes the link history of users: one row for each client link that opened, and one for each that ended. In direct
-- mode, which uses no Redis, core/commands/link-history.ts builds the same rows.
-- needs: lib-history

-- Adds a row. `conn`: the connection's row. Its field `links` says where and how long rows are kept: hash of the user,
-- hash of the stream, retention (ms), and number of rows. `details`: cause, closeCode, openMs and previousInstanceId,
-- as far as known.
lib.links_keep = function(conn, kind, details)
  local uh, sth, retentionMs, most = string.match(conn.links, '^(%S+) (%S+) (%d+) (%d+)$')
  for _, name in ipairs({ 'cause', 'closeCode', 'openMs', 'previousInstanceId' }) do
    details[name] = details[name] or cjson.null
  end
  details.clientType, details.nodeId, details.epoch = conn.clientType, conn.nodeId, tonumber(conn.epoch)
  lib.history_retain({
    id = kind .. ':' .. conn.epoch, kind = kind, userId = conn.userId, suffix = lib.history_links, uh = uh, sth = sth,
    clientId = conn.clientId, instanceId = conn.instanceId, payload = cjson.encode(details),
    streamMessages = tonumber(most), retentionMs = tonumber(retentionMs),
  })
end

-- Adds the row of a link that ended. `code`: the code of the client's close frame; nil if the client sent none.
lib.links_ended = function(conn, cause, endedAt, code)
  local openMs = math.max(0, endedAt - tonumber(conn.connectedAt))
  local kind = cause == 'replaced' and 'link_replaced' or 'link_closed'
  lib.links_keep(conn, kind, { cause = cause, closeCode = tonumber(code), openMs = openMs })
end

-- act: advertise
-- Replaces the actions that a client advertises, if its link is up under this epoch.
-- a: 1 client hash, 2 epoch, 3 actions, 4 their revision, 5 '1' if the calling process knows the rest of the row
-- Returns null if the link is not up; its last sign of life, if the calling process knows the rest; or the row as a
-- flat list.
-- class: grow
-- needs: lib-connections
acts['connections-advertise'] = function(a)
  if not lib.connections_up(a[1], a[2], {}) then return false end
  call('HSET', key('conn', a[1]), 'actions', a[3], 'rev', a[4])
  -- The binding contains the revision, so that an admission can compare it with the revision that its caller has seen.
  local bound = call('HGET', key('client', a[1]), 'b') or ''
  local start, epoch, instance, rest = string.match(bound, '^(%Z*%z)(%Z*)(%z%Z*%z)%Z*(%z.*)$')
  if epoch == a[2] then call('HSET', key('client', a[1]), 'b', start .. epoch .. instance .. a[4] .. rest) end
  if a[5] == '1' then return call('HGET', key('conn', a[1]), 'lastSeenAt') end
  return call('HGETALL', key('conn', a[1]))
end

-- act: connect
-- Binds a client to an instance and a node under a new epoch, and replaces the link that it had before.
-- a: 1 client hash, 2 user, 3 client, 4 instance, 5 node, 6 client type, 7 host ('1' or ''), 8 metadata or '', 9
--    actions, 10 their revision, 11 where and how long rows of its link history are kept (see lib-links), 12 '1' if it
--    knows places, 13 number of the instance's attempt to connect or ''
-- Returns null, and changes nothing, if the row belongs to a later attempt of the instance. Otherwise returns {epoch,
-- now, replaced instance, replaced at, previous row as a flat list, predecessors, then the results of
-- `connections_queue`}; absent values are null. A repeated call binds again, under a higher epoch; the last epoch is
-- valid.
-- class: grow
-- needs: lib-connections, lib-connections-ends, lib-links
acts['connections-connect'] = function(a)
  local ch = a[1]
  lib.connections_sweep(8)
  local previous = lib.connections_load(ch)
  if previous and previous.instanceId == a[4] and given(a[13]) and tonumber(a[13]) < tonumber(previous.linkAttempt or 0) then
    return false
  end
  local row = {
    userId = a[2], clientId = a[3], instanceId = a[4], nodeId = a[5], clientType = a[6], host = a[7],
    metadata = given(a[8]), actions = a[9], rev = a[10], links = a[11], places = given(a[12]), linkAttempt = given(a[13]),
    connectedAt = text(now), lastSeenAt = text(now), renewedAt = text(now),
  }
  if previous and previous.instanceId == a[4] then
    row.replacedInstanceId = previous.replacedInstanceId
    row.replacedAt = previous.replacedAt
    row.predecessors = previous.predecessors
    row.reportsContexts = previous.reportsContexts
  elseif previous then
    row.replacedInstanceId = previous.instanceId
    row.replacedAt = text(now)
    row.predecessors = lib.connections_predecessors(previous)
    lib.connections_drop(a[2], a[3], ch)
  end
  local cause = previous and lib.connections_end_cause(previous)
  if previous and not call('HGET', key('conn', ch), 'disconnectedAt') then
    lib.links_ended(previous, cause, lib.connections_lost(previous.nodeId, previous.lastSeenAt) or now)
  end
  -- The epoch is at least the time, so that epochs grow even if the store has lost the last epoch.
  local epoch = math.max(tonumber(call('HGET', KEYS[1], 'epoch') or 0) + 1, now)
  row.epoch = text(epoch)
  call('HSET', KEYS[1], 'epoch', row.epoch)
  call('UNLINK', key('conn', ch))
  call('HSET', key('conn', ch), unpack(flat(row)))
  -- The cause and the instance of the previous link are nil if no previous link is known.
  lib.links_keep(row, 'link_opened', { cause = cause, previousInstanceId = previous and previous.instanceId })
  lib.connections_renewed(ch)
  call('ZADD', key('conns'), 0, a[2] .. '\0' .. a[3])
  call('ZADD', key('connusers'), 0, a[2])
  lib.connections_due(a[2], a[3], ch, now + lib.connections_dead + lib.connections_forget)
  return {
    row.epoch, text(now), row.replacedInstanceId or false, row.replacedAt or false, previous and flat(previous) or false,
    row.predecessors or false, lib.connections_queue(ch),
  }
end

-- act: disconnect
-- Marks a link as down, only under this epoch. A link that is already down stays as it is.
-- a: 1 client hash, 2 epoch, 3 cause, 4 code of the client's close frame or ''
-- Returns {the row as a flat list, then what `connections_queue` returns}. The row is null if there is none, it has
-- another epoch, or the reaper of its node has marked it.
-- class: allow_oom
-- needs: lib-connections-ends
acts['connections-disconnect'] = function(a)
  lib.connections_lose(a[1], a[2], a[3], given(a[4]))
  local row = lib.connections_load(a[1])
  if not row or row.epoch ~= a[2] or row.reaped then return { false } end
  return { flat(row), lib.connections_queue(a[1]) }
end

-- act: get
-- Reads the rows of clients, with the time and the nodes whose lease is over.
-- a: for each client: its hash, then the epoch and the revision of the actions that the calling process knows, or ''
-- Returns {now, in turn each node whose lease is over and the end of the lease, then for each client: false if there is
-- no row; {'same', node, lastSeenAt, disconnectedAt, disconnectCause, closeCode} if the calling process knows the
-- rest; {'row', the row as a flat list}; or {'later'} if the call has returned `connections_bytes` of rows before: call
-- again for it}
-- class: allow_oom
-- grouped: yes

-- The most bytes of rows that one call returns, exceeded by at most one row. The limit is needed because an
-- advertisement may have a megabyte.
lib.connections_bytes = 262144
lib.connections_left = lib.connections_bytes

acts['connections-get'] = function(a)
  local reply = { text(now), call('ZRANGEBYSCORE', key('nodes'), '-inf', text(now), 'WITHSCORES') }
  for i = 1, #a, 3 do
    local name = key('conn', a[i])
    local row = call('HMGET', name, 'epoch', 'rev', 'nodeId', 'lastSeenAt', 'disconnectedAt', 'disconnectCause', 'closeCode')
    if not row[1] then reply[#reply + 1] = false
    elseif row[1] == a[i + 1] and row[2] == a[i + 2] then reply[#reply + 1] = { 'same', row[3], row[4], row[5], row[6], row[7] }
    elseif lib.connections_left <= 0 then reply[#reply + 1] = { 'later' }
    else
      local whole = call('HGETALL', name)
      for _, value in ipairs(whole) do lib.connections_left = lib.connections_left - #value end
      reply[#reply + 1] = { 'row', whole }
    end
  end
  return reply
end

-- act: sweep
-- Forgets a bounded number of rows that are due to be forgotten, and then reads parts of indexes by name.
-- a: 1 how many rows to forget at most; then, for each part: kind of the index, lower bound, upper bound, how many
--    members, '1' to count
-- Returns {now, '1' if more rows are due, in turn each node whose lease is over and the end of the lease, {members,
-- count or -1} of each part}
-- class: allow_oom
-- needs: lib-connections-ends
acts['connections-sweep'] = function(a)
  local more = lib.connections_sweep(tonumber(a[1]))
  local over = call('ZRANGEBYSCORE', key('nodes'), '-inf', text(now), 'WITHSCORES')
  local reply = { text(now), more and '1' or '', over }
  for i = 2, #a, 5 do
    local name = key(a[i])
    local members = call('ZRANGEBYLEX', name, a[i + 1], a[i + 2], 'LIMIT', 0, a[i + 3])
    local count = -1
    if a[i + 4] == '1' then count = call('ZLEXCOUNT', name, a[i + 1], a[i + 2]) end
    reply[#reply + 1] = { members, count }
  end
  return reply
end

-- act: touch
-- Records a sign of life of a link that is up under this epoch.
-- a: 1 client hash, 2 epoch, 3 revision of the actions that the calling process knows
-- Returns null if the link is not up; now, if the calling process knows the rest; or the row as a flat list.
-- class: allow_oom
-- needs: lib-connections
-- grouped: yes
acts['connections-touch'] = function(a)
  local ch = a[1]
  local row = lib.connections_up(ch, a[2], { 'rev', 'renewedAt' })
  if not row then return false end
  local name = key('conn', ch)
  call('HSET', name, 'lastSeenAt', text(now))
  lib.connections_due(row.userId, row.clientId, ch, now + lib.connections_dead + lib.connections_forget)
  if now - tonumber(row.renewedAt) >= lib.connections_renew then
    call('HSET', name, 'renewedAt', text(now))
    lib.connections_renewed(ch)
  end
  if row.rev == a[3] then return text(now) end
  return call('HGETALL', name)
end

-- act: note-reconnect
-- Counts that a link of a client opened, unless the slot has no room for a further client. Each slot of time has a ZSET:
-- its members are clients, and the score of a client is how often its link opened again in the slot (0: it opened once,
-- as far as is known). The key expires when the slot is over an hour old.
-- a: 1 user, 2 client; 3 '1' if it had a connection before; 4 the most clients of a slot; 5 length of a slot (ms); 6 how
--    many slots an hour has.
-- Returns nothing.
-- class: grow
acts['connections-note-reconnect'] = function(a)
  local member, again, length, slots = a[1] .. '\0' .. a[2], a[3] == '1', tonumber(a[5]), tonumber(a[6])
  local began = now - now % length
  local name = key('reconnects', text(began))
  local counted = call('ZSCORE', name, member)
  if not counted and call('ZCARD', name) >= tonumber(a[4]) then return end
  for i = 0, slots - 1 do
    again = again or call('ZSCORE', key('reconnects', text(began - i * length)), member)
  end
  call('ZADD', name, 'INCR', again and 1 or 0, member)
  call('PEXPIRE', name, (slots + 1) * length)
end

-- The nodes of the deployment: their leases, their mailboxes, and the cleanup after nodes that are gone. The ZSET
-- `nodes` contains each node that is attached, or was attached and is not cleaned up yet, scored by the end of its
-- lease. The HASH `node` of a node exists longer, so that no epoch is used twice and a fenced node is recognised.

-- library: lib-nodes-reap
-- Cleans up after nodes that are gone, and removes expired data with each heartbeat of a living node.
-- needs: lib-connections-ends, lib-history, lib-spans

-- How long the epoch of a node that is gone is kept, in ms. Within this time, a process that resumes under the node id
-- is recognised as fenced.
lib.nodes_kept = 7 * 24 * 3600 * 1000

-- How long a dead node stays listed after its cleanup, in ms (limits.ts: NODE_GONE_MS).
lib.nodes_gone = 30000

-- Removes from the list at most 16 nodes that died more than `nodes_gone` ago, with their reports.
lib.nodes_sweep_gone = function()
  local due = call('ZRANGEBYSCORE', key('nodesgone'), '-inf', text(now), 'LIMIT', 0, 16)
  for _, node in ipairs(due) do
    call('ZREM', key('nodesgone'), node)
    call('HDEL', key('node', node), 'report', 'updatedAt')
  end
end

-- Removes a limited number of expired connections, ended commands and streams. Called with each heartbeat of a node.
lib.nodes_sweep = function(retentionMs)
  lib.nodes_sweep_gone()
  lib.connections_sweep(32)
  lib.spans_sweep_counts()
  lib.spans_sweep(128)
  lib.history_sweep(retentionMs, 32)
end

-- The act stops after it has returned this many bytes of rows.
lib.nodes_answer_most = 262144

-- Marks the link of a client as lost because its node is gone, and adds the client's row to `out`. Has no effect if the
-- link was marked before.
lib.nodes_lose_link = function(ch, epoch, out)
  if not lib.connections_lose(ch, epoch, 'node_lost') then return end
  call('HSET', key('conn', ch), 'reaped', '1')
  local row = call('HGETALL', key('conn', ch))
  for _, value in ipairs(row) do out.size = out.size + #value end
  out.rows[#out.rows + 1] = row
end

-- Returns the request of one live command of a client; the request names the client. Returns nil if the client has
-- none.
lib.nodes_request = function(client)
  for _, field in ipairs(call('HKEYS', client)) do
    if string.byte(field) == 97 then return call('HGET', client, field) end
  end
end

-- Unbinds a client from a node that is gone, if no command waits for the client. Otherwise adds the client's link to
-- `out`, and leaves the client bound until the caller has parked its commands.
lib.nodes_unbind_client = function(node, ch, out)
  local client = key('client', ch)
  local row = call('HMGET', client, 'b', 'n')
  local of, epoch, instance = string.match(row[1] or '', '^(%Z*)%z(%Z*)%z(%Z*)%z')
  if of == node then
    lib.nodes_lose_link(ch, epoch, out)
    local request = row[2] and lib.nodes_request(client)
    if request then
      out.waiting[#out.waiting + 1] = { request, epoch, instance }
      return
    end
    call('HDEL', client, 'b')
  end
  call('SREM', key('bound', node), ch)
end

-- Unbinds at most `limit` clients from a node. Adds the rows of links that are found lost to `out`. Returns how many
-- clients were bound.
lib.nodes_unbind = function(node, limit, out)
  local bound = call('SRANDMEMBER', key('bound', node), limit)
  for _, ch in ipairs(bound) do
    lib.nodes_unbind_client(node, ch, out)
    if out.size > lib.nodes_answer_most then break end
  end
  return #bound
end

-- act: attach
-- Registers a process under a node id, with a new epoch that is higher than any before and an empty mailbox.
-- a: node; boot, a text that no other process has; lease, ms; the epoch that this boot had here before, or ''.
-- Returns {'attached', epoch, lost}; or {'taken'}: another live process holds the id; or {'reap', 0, lost}: the caller
-- first has to clean up after an earlier boot. `lost` is 1 if the store no longer knows that epoch.
-- class: grow
-- needs: lib-nodes-reap
acts['nodes-attach'] = function(a)
  local node, boot, lease = a[1], a[2], tonumber(a[3])
  local name = key('node', node)
  local row = call('HMGET', name, 'epoch', 'boot')
  local held = call('ZSCORE', key('nodes'), node)
  if held and tonumber(held) > now and row[2] ~= boot then return { 'taken' } end
  local lost = 0
  if given(a[4]) and tonumber(row[1] or 0) < tonumber(a[4]) then lost = 1 end
  if held then return { 'reap', 0, lost } end
  local epoch = text(math.max(tonumber(row[1] or 0) + 1, tonumber(given(a[4]) or 0) + 1, now))
  call('DEL', name)
  call('HSET', name, 'epoch', epoch, 'boot', boot, 'beatAt', text(now), 'since', text(now))
  call('HSET', KEYS[1], 'calls:' .. node, epoch .. ' 0')
  call('PEXPIRE', name, lib.nodes_kept)
  call('ZADD', key('nodes'), text(now + lease), node)
  call('ZREM', key('nodesgone'), node)
  return { 'attached', epoch, lost }
end

-- act: beat
-- Renews a node's lease, stores the time so that the clock never goes back, and removes a bounded part of the expired
-- data.
-- a: node; boot; lease, ms; report (JSON), or '' if another partition has it; how long history is kept, ms.
-- Returns false if this boot no longer holds the id. Else {'1' if the lease had run out and is valid again, or '', then
-- the nodes to be reaped}. Returns no nodes to be reaped until the beats of this node have arrived without a gap for
-- as long as a lease lasts: a pause of Redis ends every lease at once, and the first node that resumes must not reap
-- all others.
-- class: allow_oom
-- needs: lib-nodes-reap
acts['nodes-beat'] = function(a)
  local node, boot, lease = a[1], a[2], tonumber(a[3])
  local name = key('node', node)
  local row = call('HMGET', name, 'boot', 'fenced', 'beatAt', 'since')
  if row[1] ~= boot or row[2] then return false end
  local since = tonumber(row[4])
  if now - tonumber(row[3]) > lease / 2 then since = now end
  call('HSET', name, 'beatAt', text(now), 'since', text(since))
  if given(a[4]) then call('HSET', name, 'report', a[4], 'updatedAt', text(now)) end
  call('PEXPIRE', name, lib.nodes_kept)
  local held = call('ZSCORE', key('nodes'), node)
  local lapsed = held and tonumber(held) <= now and '1' or ''
  call('ZADD', key('nodes'), text(now + lease), node)
  if tonumber(call('HGET', key('meta'), 'floor') or 0) < now then call('HSET', key('meta'), 'floor', text(now)) end
  lib.nodes_sweep(tonumber(a[5]))
  if now - since < lease then return { lapsed } end
  return { lapsed, unpack(call('ZRANGEBYSCORE', key('nodes'), '-inf', text(now), 'LIMIT', 0, 16)) }
end

-- act: due
-- Lists the commands past their connect deadline or deadline, the longest due first. Does not change them.
-- a: the most commands.
-- Returns {1 if the same call would find more, else 0; then for each {since when it is due, user, client, command}}.
-- class: allow_oom
-- needs: lib-due
acts['nodes-due'] = function(a)
  local limit = tonumber(a[1])
  local found, more = lib.due_find(limit)
  local reply = { more and 1 or 0 }
  for i = 1, math.min(limit, #found) do
    local userId, clientId, commandId = string.match(found[i].name, '^(%Z*)%z(%Z*)%z(.*)$')
    reply[i + 1] = { text(found[i].since), userId, clientId, commandId }
  end
  return reply
end

-- act: post
-- Adds a row to a node's mailbox.
-- a: node; kind; then name and value of each field.
-- Returns 1; 0: no such node is attached.
-- class: allow_oom
acts['nodes-post'] = function(a)
  local row = call('HMGET', key('node', a[1]), 'epoch', 'fenced')
  if not row[1] or row[2] then return 0 end
  call('XADD', key('mailbox', a[1], row[1]), '*', 'kind', unpack(a, 2))
  return 1
end

-- act: reap
-- Cleans up after a node whose lease is over, or that leaves, one part at a time: fences it, removes its mailbox, marks
-- its links as lost, unbinds its clients, and finally removes the node. The caller parks the commands that wait for
-- these clients. The waits of its callers end with its epoch. A node that died stays listed for `nodes_gone`. Commands
-- that its clients are running stay: the same instance may resume them, else they end at their deadline.
-- a: node; boot, or '' for a node of another process, which is reaped only when its lease is over.
-- Returns {1 if more is left, 0 if nothing is left or the node is alive; the rows, as flat lists, of the links that
-- this act found lost; the clients for which commands wait, each {request of one of its commands, epoch and instance of
-- its link}: the caller parks their commands before it calls again}.
-- class: allow_oom
-- needs: lib-nodes-reap
-- rows: all
acts['nodes-reap'] = function(a)
  local node, boot = a[1], given(a[2])
  local lease = call('ZSCORE', key('nodes'), node)
  if not lease then return { 0, {}, {} } end
  local name = key('node', node)
  local row = call('HMGET', name, 'epoch', 'boot', 'fenced')
  if boot and row[2] ~= boot then return { 0, {}, {} } end
  if not boot and tonumber(lease) > now then return { 0, {}, {} } end
  if not row[3] then
    local epoch = row[1] or '0'
    call('HSET', name, 'epoch', text(tonumber(epoch) + 1), 'fenced', '1')
    call('HDEL', KEYS[1], 'calls:' .. node)
    call('PEXPIRE', name, lib.nodes_kept)
    call('ZADD', key('nodes'), boot and 1 or 0, node)
    call('DEL', key('mailbox', node, epoch))
  end
  local out = { rows = {}, waiting = {}, size = 0 }
  if lib.nodes_unbind(node, 64, out) > 0 then return { 1, out.rows, out.waiting } end
  call('ZREM', key('nodes'), node)
  -- The cleanup of a leaving node may have been begun by that node and finished by another one.
  if boot or tonumber(lease) == 1 then call('HDEL', name, 'report', 'updatedAt')
  else call('ZADD', key('nodesgone'), text(now + lib.nodes_gone), node) end
  return { 0, {}, {} }
end

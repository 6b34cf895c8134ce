-- Nodes of the deployment: their leases, their mailboxes, and what is left of nodes that are gone.

-- library: lib-nodes-reap
-- Cleans up after nodes that are gone, and removes expired state with each heartbeat of a node that lives.
-- needs: lib-commands, lib-connections-ends, lib-ended, lib-history

-- How long the epoch of a node that is gone is kept, ms. A process that resumes under that node id within this time is
-- recognized as fenced.
lib.nodes_kept = 7 * 24 * 3600 * 1000

-- How long a node that died stays listed after it was cleaned up, ms (limits.ts: NODE_GONE_MS).
lib.nodes_gone = 30000

-- Removes from the list at most 16 nodes that died longer than `nodes_gone` ago, with their reports.
lib.nodes_sweep_gone = function()
  local due = call('ZRANGEBYSCORE', key('nodesgone'), '-inf', text(now), 'LIMIT', 0, 16)
  for _, node in ipairs(due) do
    call('ZREM', key('nodesgone'), node)
    call('HDEL', key('node', node), 'report', 'updatedAt')
  end
end

-- Removes a bounded part of the expired connections, ended commands and history. Called with each beat of a node.
lib.nodes_sweep = function(retentionMs)
  lib.nodes_sweep_gone()
  lib.connections_sweep(32)
  lib.ended_sweep(128)
  lib.history_sweep(retentionMs, 32)
end

-- The most commands that one act parks, and the number of bytes of returned rows after which the act stops.
lib.nodes_park_most = 100
lib.nodes_answer_most = 262144

-- Marks the link of a client as lost, because its node is gone, and adds the client's row to `out`. Does nothing if the
-- link was marked before.
lib.nodes_lose_link = function(ch, epoch, out)
  if not lib.connections_lose(ch, epoch, 'node_lost') then return end
  call('HSET', key('conn', ch), 'reaped', '1')
  local row = call('HGETALL', key('conn', ch))
  for _, value in ipairs(row) do out.size = out.size + #value end
  out.rows[#out.rows + 1] = row
end

-- Parks at most `most` queued commands of a client. Once all are parked, unbinds the client from the node that is gone.
-- Returns how many it parked, and whether the client is unbound.
lib.nodes_unbind_client = function(node, ch, most, out)
  local link = lib.commands_link(ch)
  if not link or link.nodeId ~= node then return 0, true end
  local parked = 0
  for _, one in ipairs(lib.commands_of(ch, function(stage) return stage == 'queued' end)) do
    if parked >= most then return parked, false end
    lib.commands_park(lib.commands_live(ch, one.id))
    parked = parked + 1
  end
  set(key('client', ch), 'b', false)
  lib.nodes_lose_link(ch, link.epoch, out)
  return parked, true
end

-- Unbinds at most `limit` clients from a node. Adds the rows of the links that are lost by this to `out`. Returns how
-- many clients it found.
lib.nodes_unbind = function(node, limit, out)
  local bound = call('SRANDMEMBER', key('bound', node), limit)
  local left = lib.nodes_park_most
  for _, ch in ipairs(bound) do
    local parked, unbound = lib.nodes_unbind_client(node, ch, left, out)
    left = left - parked
    if unbound then call('SREM', key('bound', node), ch) end
    if left <= 0 or out.size > lib.nodes_answer_most then break end
  end
  return #bound
end

-- library: lib-nodes
-- Says which nodes are alive, and posts rows to their mailboxes. The ZSET `nodes` has each node that is attached, or
-- that was attached and is not cleaned up yet. The score of a node is the end of its lease. The HASH `node` of a node
-- lasts longer, so that no epoch is given twice and a fenced node is recognized.

-- Returns when a node's lease ends; false for a node that is not attached.
lib.nodes_lease = function(node)
  return fact('lease', node, lib.nodes_read_lease)
end
lib.nodes_read_lease = function(node) return call('ZSCORE', key('nodes'), node) end

-- Says whether a node is alive: false once its lease is over. A node that has no lease in this partition, because it
-- never attached or was cleaned up, counts as alive.
lib.nodes_alive = function(node)
  local lease = lib.nodes_lease(node)
  return not lease or tonumber(lease) > now
end

-- Returns the epoch of a node's current boot; false if no such node is attached. The HASH of a node that was cleaned up
-- stays, and says that the node is fenced. The epoch of the calling node is known without a read, because the driver
-- has compared it.
lib.nodes_epoch = function(node)
  if node == ARGV[2] then return ARGV[3] end
  return fact('epoch', node, lib.nodes_read_epoch)
end
lib.nodes_read_epoch = function(node)
  local row = call('HMGET', key('node', node), 'epoch', 'fenced')
  return row[1] and not row[2] and row[1]
end

-- Returns the key of the mailbox of a node's current boot; false if no such node is attached.
lib.nodes_mailbox = function(node)
  local epoch = lib.nodes_epoch(node)
  return epoch and key('mailbox', node, epoch)
end

-- Adds a row to the mailbox of a node's current boot. Returns false if no such node is attached. The rows of a call of
-- grouped acts become one entry. In it, each row begins with its field `kind`.
lib.nodes_post = function(node, kind, fields)
  local mailbox = fact('mailbox', node, lib.nodes_mailbox)
  if not mailbox then return false end
  if not grouping then
    call('XADD', mailbox, '*', 'kind', kind, unpack(flat(fields)))
    return true
  end
  local entry = fact('entry', mailbox, lib.nodes_entry)
  local words, count = entry.words, entry.count
  words[count + 1], words[count + 2] = 'kind', kind
  count = count + 2
  for field, value in pairs(fields) do
    words[count + 1], words[count + 2] = field, value
    count = count + 2
  end
  entry.count = count
  return true
end

-- Begins the entry that a call adds to a mailbox at its end. `words`: the words of the XADD command; `count`: how many.
lib.nodes_entry = function(mailbox)
  local entry = { words = { 'XADD', mailbox, '*' }, count = 3 }
  atEnd(function() call(unpack(entry.words, 1, entry.count)) end)
  return entry
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
-- needs: lib-nodes, lib-nodes-reap
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
  local lapsed = lib.nodes_alive(node) and '' or '1'
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

-- act: look
-- Reads the nodes of the partition.
-- Returns {now, {node, end of its lease (0: it is being reaped; 1: it leaves), ...}, {node that died and is still
-- listed, ...}}.
-- class: allow_oom
acts['nodes-look'] = function()
  return {
    text(now),
    call('ZRANGE', key('nodes'), 0, -1, 'WITHSCORES'),
    call('ZRANGEBYSCORE', key('nodesgone'), '(' .. text(now), '+inf'),
  }
end

-- act: post
-- Adds a row to a node's mailbox.
-- a: node; kind; then name and value of each field.
-- Returns 1; 0: no such node is attached.
-- class: allow_oom
-- needs: lib-nodes
acts['nodes-post'] = function(a)
  local fields = {}
  for i = 3, #a, 2 do fields[a[i]] = a[i + 1] end
  return lib.nodes_post(a[1], a[2], fields) and 1 or 0
end

-- act: reap
-- Cleans up after a node whose lease is over, or that leaves, one part at a time: fences it, removes its mailbox, marks
-- its links as lost, parks the commands that were queued for them, and finally removes the node. The waits of its
-- callers end with its epoch. A node that died stays listed for `nodes_gone`. Commands that its clients are running
-- stay: the same instance may resume them, else they end at their deadline.
-- a: node; boot, or '' for a node of another process, which is reaped only when its lease is over.
-- Returns {1 if more is left, 0 if nothing is left or the node is alive; the rows, as flat lists, of the links that
-- this act found lost}.
-- class: allow_oom
-- needs: lib-nodes-reap
-- rows: all
acts['nodes-reap'] = function(a)
  local node, boot = a[1], given(a[2])
  local lease = call('ZSCORE', key('nodes'), node)
  if not lease then return { 0, {} } end
  local name = key('node', node)
  local row = call('HMGET', name, 'epoch', 'boot', 'fenced')
  if boot and row[2] ~= boot then return { 0, {} } end
  if not boot and tonumber(lease) > now then return { 0, {} } end
  if not row[3] then
    local epoch = row[1] or '0'
    call('HSET', name, 'epoch', text(tonumber(epoch) + 1), 'fenced', '1')
    call('HDEL', KEYS[1], 'calls:' .. node)
    call('PEXPIRE', name, lib.nodes_kept)
    call('ZADD', key('nodes'), boot and 1 or 0, node)
    call('DEL', key('mailbox', node .. ':' .. epoch))
  end
  local out = { rows = {}, size = 0 }
  if lib.nodes_unbind(node, 64, out) > 0 then return { 1, out.rows } end
  call('ZREM', key('nodes'), node)
  -- Another node may finish the cleanup that a leaving node began.
  if boot or tonumber(lease) == 1 then call('HDEL', name, 'report', 'updatedAt')
  else call('ZADD', key('nodesgone'), text(now + lib.nodes_gone), node) end
  return { 0, {} }
end

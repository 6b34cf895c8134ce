-- Nodes: which live, and their mailboxes. `nodes` holds each node that is attached, or was and is not cleared away yet, by when its lease
-- ends; the hash `node` outlives it, so that an epoch never comes twice and who was fenced can be told so.

-- Whether a node may be counted on: false once its lease is over. A node that never attached here has none.
lib.nodes_alive = function(node)
  local lease = call('ZSCORE', key('nodes'), node)
  return not lease or tonumber(lease) > now
end

-- Puts a row into the mailbox of a node's present boot. False when no such node is attached.
lib.nodes_post = function(node, kind, fields)
  if not call('ZSCORE', key('nodes'), node) then return false end
  local row = call('HMGET', key('node', node), 'epoch', 'fenced')
  if not row[1] or row[2] then return false end
  call('XADD', key('mailbox', node .. ':' .. row[1]), '*', 'kind', kind, unpack(flat(fields)))
  return true
end

-- How long the epoch of a node that is gone is remembered, ms: a process that slept so long meets an empty row.
lib.nodes_kept = 7 * 24 * 3600 * 1000

-- The rooms forget a little of what is due: as often as the nodes beat.
lib.nodes_sweep = function(retentionMs)
  lib.connections_sweep(32)
  lib.commands_sweep(32)
  lib.history_sweep(retentionMs, 32)
end

-- Parks what waits for a client, and looses it from a node that is gone. Answers how many commands were waiting.
lib.nodes_loose = function(node, ch)
  local binding = hash(key('binding', ch))
  if not binding or binding.nodeId ~= node then return 0 end
  local waiting = call('ZRANGE', key('waiting', ch), 0, -1)
  for _, kh in ipairs(waiting) do lib.commands_park(kh) end
  call('DEL', key('binding', ch))
  lib.connections_lose(ch, binding.epoch, 'node_lost')
  return #waiting
end

-- At most so many clients that were bound to a node are no more. Answers how many were found.
lib.nodes_unbind = function(node, limit)
  local bound = call('SRANDMEMBER', key('bound', node), limit)
  local parked = 0
  for _, ch in ipairs(bound) do
    parked = parked + lib.nodes_loose(node, ch)
    call('SREM', key('bound', node), ch)
    if parked > 200 then break end
  end
  return #bound
end

-- At most so many waits of a node's callers end. Answers how many were found.
lib.nodes_unwait = function(node, limit)
  local waits = call('SRANDMEMBER', key('nodewaits', node), limit)
  for _, wait in ipairs(waits) do
    local kh, rpcId = string.match(wait, '^([^:]+):(.*)$')
    lib.waiters_remove(kh, rpcId)
    call('SREM', key('nodewaits', node), wait)
  end
  return #waits
end

-- Cleans up after nodes that are gone, and removes expired state with each heartbeat of a node that lives.
-- needs: lib-commands, lib-connections-ends, lib-ended, lib-history

-- How long the epoch of a node that is gone is kept, ms. Within this time, a process that resumes under that node id is
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

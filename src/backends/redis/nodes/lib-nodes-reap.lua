-- Clearing away after nodes that are gone.
-- needs: lib-commands, lib-connections, lib-ended, lib-history, lib-waiters
-- How long the epoch of a node that is gone is remembered, ms: a process that slept so long meets an empty row.
lib.nodes_kept = 7 * 24 * 3600 * 1000

-- How long a node that died is still listed once it was cleared away, ms (limits.ts: NODE_GONE_MS).
lib.nodes_gone = 30000

-- Forgets what nodes said that died so long ago, at most 16.
lib.nodes_sweep_gone = function()
  local due = call('ZRANGEBYSCORE', key('nodesgone'), '-inf', text(now), 'LIMIT', 0, 16)
  for _, node in ipairs(due) do
    call('ZREM', key('nodesgone'), node)
    call('HDEL', key('node', node), 'report', 'updatedAt')
  end
end

-- The rooms forget a little of what is due: as often as the nodes beat.
lib.nodes_sweep = function(retentionMs)
  lib.nodes_sweep_gone()
  lib.connections_sweep(32)
  lib.ended_sweep(128)
  lib.history_sweep(retentionMs, 32)
end

-- Commands that one act parks, and bytes of the rows that one act answers.
lib.nodes_park_most = 100
lib.nodes_answer_most = 262144

-- Marks the link that a client had on a node that is gone as lost, and keeps the row in `out` if that was this act's doing.
lib.nodes_lose_link = function(ch, epoch, out)
  if not lib.connections_lose(ch, epoch, 'node_lost') then return end
  call('HSET', key('conn', ch), 'reaped', '1')
  local row = call('HGETALL', key('conn', ch))
  for _, value in ipairs(row) do out.size = out.size + #value end
  out.rows[#out.rows + 1] = row
end

-- Parks what waits for a client, at most `most`, and looses it from a node that is gone once all is parked. Answers how many it parked, and
-- whether the client is loose.
lib.nodes_loose = function(node, ch, most, out)
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

-- At most so many clients that were bound to a node are no more; the rows of links that were lost by it go into `out`. Answers how many
-- were found.
lib.nodes_unbind = function(node, limit, out)
  local bound = call('SRANDMEMBER', key('bound', node), limit)
  local left = lib.nodes_park_most
  for _, ch in ipairs(bound) do
    local parked, loose = lib.nodes_loose(node, ch, left, out)
    left = left - parked
    if loose then call('SREM', key('bound', node), ch) end
    if left <= 0 or out.size > lib.nodes_answer_most then break end
  end
  return #bound
end

-- At most so many waits of a node's callers end. Answers how many were found.
lib.nodes_unwait = function(node, limit)
  local waits = call('SRANDMEMBER', key('nodewaits', node), limit)
  for _, wait in ipairs(waits) do
    lib.waiters_remove(lib.waiters_named(wait))
    call('SREM', key('nodewaits', node), wait)
  end
  return #waits
end

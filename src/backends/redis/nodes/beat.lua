-- Renews a node's lease, stores the time so that the clock never goes back, and removes a bounded part of the expired
-- data.
-- a: node; boot; lease, ms; report, JSON, or '' where another partition has it; how long history is kept, ms.
-- Returns false if this boot no longer holds the id. Else {'1' if the lease had run out and is valid again, or '', then
-- the nodes to be reaped}. No node is named until the beats of this node arrived without a gap for as long as a lease
-- lasts: a pause of Redis ends every lease at once, and the first node that resumes must not reap all others.
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

-- Clears away what a node held whose lease is over, or that leaves: it is fenced, its mailbox goes, its links count as lost and what waited
-- for them is parked, the waits of its callers end; at last the node itself: one that died is still listed for `nodes_gone`. A part at a
-- time; what its links were running is left to the same instance and to the deadline.
-- a: node; boot, '' for one of another process: that is cleared away only when its lease is over.
-- Returns {1: more is left, or 0: nothing is, or it lives; the rows, as flat lists, of the links that this act found lost}.
-- class: allow_oom
-- needs: lib-nodes-reap
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
    call('HSET', name, 'epoch', text(tonumber(epoch) + 1), 'seq', '0', 'fenced', '1')
    call('PEXPIRE', name, lib.nodes_kept)
    call('ZADD', key('nodes'), boot and 1 or 0, node)
    call('DEL', key('mailbox', node .. ':' .. epoch))
  end
  local out = { rows = {}, size = 0 }
  if lib.nodes_unbind(node, 64, out) + lib.nodes_unwait(node, 256) > 0 then return { 1, out.rows } end
  call('ZREM', key('nodes'), node)
  -- Others may finish what a node began that leaves.
  if boot or tonumber(lease) == 1 then call('HDEL', name, 'report', 'updatedAt')
  else call('ZADD', key('nodesgone'), text(now + lib.nodes_gone), node) end
  return { 0, {} }
end

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

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

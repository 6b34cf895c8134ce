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

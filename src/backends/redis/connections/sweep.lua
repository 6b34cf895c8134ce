-- Forgets a bounded number of rows that are due to be forgotten, and then reads parts of indexes by name.
-- a: 1 how many rows to forget at most; then, for each part: kind of the index, lower bound, upper bound, how many
--    members, '1' to count
-- Returns {now, '1' if more rows are due, in turn each node whose lease is over and the end of the lease, {members,
-- count or -1} of each part}
-- class: allow_oom
-- needs: lib-connections-ends
acts['connections-sweep'] = function(a)
  local more = lib.connections_sweep(tonumber(a[1]))
  local over = call('ZRANGEBYSCORE', key('nodes'), '-inf', text(now), 'WITHSCORES')
  local reply = { text(now), more and '1' or '', over }
  for i = 2, #a, 5 do
    local name = key(a[i])
    local members = call('ZRANGEBYLEX', name, a[i + 1], a[i + 2], 'LIMIT', 0, a[i + 3])
    local count = -1
    if a[i + 4] == '1' then count = call('ZLEXCOUNT', name, a[i + 1], a[i + 2]) end
    reply[#reply + 1] = { members, count }
  end
  return reply
end

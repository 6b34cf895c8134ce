-- Reads the rows of clients, with the time and the nodes whose lease is over.
-- a: for each client: its hash, then the epoch and the revision of the actions that the calling process knows, or ''
-- Returns {now, in turn each node whose lease is over and the end of the lease, then for each client: false if there is
-- no row; {'same', node, lastSeenAt, disconnectedAt, disconnectCause, closeCode} if the calling process knows the
-- rest; {'row', the row as a flat list}; or {'later'} if the call has returned `connections_bytes` of rows before: call
-- again for it}
-- class: allow_oom
-- grouped: yes

-- The most bytes of rows that one call returns, give or take one row. What a client advertises may be a megabyte.
lib.connections_bytes = 262144
lib.connections_left = lib.connections_bytes

acts['connections-get'] = function(a)
  local over = fact('nodes over', '', function() return call('ZRANGEBYSCORE', key('nodes'), '-inf', text(now), 'WITHSCORES') end)
  local reply = { text(now), over }
  for i = 1, #a, 3 do
    local name = key('conn', a[i])
    local row = fact('connection', name, function()
      return call('HMGET', name, 'epoch', 'rev', 'nodeId', 'lastSeenAt', 'disconnectedAt', 'disconnectCause', 'closeCode')
    end)
    if not row[1] then reply[#reply + 1] = false
    elseif row[1] == a[i + 1] and row[2] == a[i + 2] then reply[#reply + 1] = { 'same', row[3], row[4], row[5], row[6], row[7] }
    elseif lib.connections_left <= 0 then reply[#reply + 1] = { 'later' }
    else
      local whole = call('HGETALL', name)
      for _, value in ipairs(whole) do lib.connections_left = lib.connections_left - #value end
      reply[#reply + 1] = { 'row', whole }
    end
  end
  return reply
end

-- Deduplication: how many messages were received, and how many of them were repeated. Each received message has a mark
-- (see commands/transaction-writes.ts), and received messages are counted in buckets of 10 s.

-- act: evict
-- Drops the oldest marks until their total is within its limit. Called after a message that exceeded the limit. a: 1
-- the guarantee of a user, 2 the total of this partition, 3 how long a mark counts (ms).
-- Returns {1 if the caller must call again or else 0, how many marks were dropped, then the users of these marks}.
-- class: allow_oom
-- rows: all
-- needs: lib-bounded
acts['dedup-evict'] = function(a)
  local count, users, known = 0, {}, {}
  local bounds = { guarantee = tonumber(a[1]), total = tonumber(a[2]), life = tonumber(a[3]) }
  local more = lib.bounded_keep(lib.bounded_of.d, bounds, function(uh, userId, _, entries)
    for _, entry in ipairs(entries) do
      local at, hash = string.match(entry, '^(%d+) (.*)$')
      -- If a relay with a fast clock has replaced the mark, the order contains the mark twice.
      if tonumber(at) > now and string.match(call('GET', key('mark', hash)) or '', '^%d+') == at then
        call('DEL', key('mark', hash))
        count = count + 1
        if not known[uh] then users[#users + 1] = userId end
        known[uh] = true
      end
    end
  end)
  if count > 0 then call('HSET', KEYS[1], 'forgot', text(now)) end
  return { more and 1 or 0, count, unpack(users) }
end

-- Messages between nodes.

-- act: publish
-- Publishes messages on channels of the partition, in order and after the earlier acts of the call.
-- a: 1 '1' if every subscriber listens to this server, so that messages without a subscriber are left out; then for
--    each message the kind of its channel, the hash in the channel's name or '', and its text.
-- Returns nothing.
-- class: allow_oom
-- grouped: yes
acts['bus-publish'] = function(a)
  local channels = {}
  for i = 2, #a, 3 do channels[#channels + 1] = key(a[i], given(a[i + 1])) end
  local listeners = a[1] == '1' and call('PUBSUB', 'NUMSUB', unpack(channels))
  for i, channel in ipairs(channels) do
    if not listeners or tonumber(listeners[2 * i]) > 0 then call('PUBLISH', channel, a[3 * i + 1]) end
  end
  return false
end

-- act: watch
-- Records that some node listens to hints about the partition's commands. Hints are published until all such records
-- have expired.
-- a: 1 the lifetime of the record, ms.
-- Returns nothing.
-- class: grow
-- grouped: yes
acts['bus-watch'] = function(a)
  local upTo = now + tonumber(a[1])
  if upTo <= tonumber(head[2] or 0) then return false end
  head[2] = text(upTo)
  call('HSET', KEYS[1], 'watched', head[2])
  return false
end

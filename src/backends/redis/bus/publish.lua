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

-- Publishes on channels of the partition, in order, after what its caller did before.
-- a: of each message: kind of the channel; hash, or ''; text.
-- Returns nothing.
-- class: allow_oom
-- grouped: yes
acts['bus-publish'] = function(a)
  for i = 1, #a, 3 do call('PUBLISH', key(a[i], given(a[i + 1])), a[i + 2]) end
  return false
end

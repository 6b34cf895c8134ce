-- Publishes on a channel of the partition, after what its caller did before.
-- a: 1 kind of the channel; 2 hash, or ''; 3 message
-- Returns nothing.
-- class: settle
grouped['bus-publish'] = true
acts['bus-publish'] = function(a)
  call('PUBLISH', key(a[1], given(a[2])), a[3])
  return false
end

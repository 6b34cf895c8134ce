-- Deduplication: how many messages were received, and how many of them before. Each message that was received has a
-- mark (see commands/act-words.ts), and received messages are counted in buckets of 10 s.

-- act: stats
-- Adds up the counters of the last buckets, including the current one. a: 1 how many buckets. Returns {seen, unique,
-- duplicates}.
-- class: allow_oom
acts['dedup-stats'] = function(a)
  local current = math.floor(now / 10000)
  local sums = { 0, 0 }
  for bucket = current - tonumber(a[1]) + 1, current do
    local counted = call('HMGET', key('seen', text(bucket)), 'unique', 'duplicates')
    for i = 1, 2 do sums[i] = sums[i] + tonumber(counted[i] or 0) end
  end
  return { text(sums[1] + sums[2]), text(sums[1]), text(sums[2]) }
end

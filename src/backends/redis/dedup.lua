-- Deduplication: which messages were received before.

-- library: lib-dedup
-- Recognizes messages that are received twice. Each message that was received has a mark, and received messages are
-- counted in buckets of 10 s. A mark's value is `<until> <token> <last> <place>`: when the mark ends, the call that set
-- it, the call that saw it last, and the position of the message in history, or '-'.
lib.dedup_ttl = 120000
lib.dedup_grain = 10000

-- Reads the mark of a message; nil if there is none, or it has ended.
lib.dedup_mark = function(markHash)
  local value = call('GET', key('mark', markHash))
  return value and lib.dedup_parse(value) or nil
end

lib.dedup_parse = function(value)
  local ends, token, last, place = string.match(value, '^(%d+) (%S+) (%S+) (%S+)$')
  if not ends or tonumber(ends) <= now then return nil end
  return { ends = tonumber(ends), token = token, last = last, place = place }
end

lib.dedup_text = function(mark)
  return text(mark.ends) .. ' ' .. mark.token .. ' ' .. mark.last .. ' ' .. mark.place
end

-- Writes a mark. Its key expires a little after the mark has ended.
lib.dedup_write = function(markHash, mark)
  call('SET', key('mark', markHash), lib.dedup_text(mark), 'PX', text(mark.ends - now + 10000))
end

lib.dedup_count = function(unique)
  local counts = fact('counts', '', lib.dedup_counts)
  local field = unique and 'unique' or 'duplicates'
  counts[field] = counts[field] + 1
  if not grouping then lib.dedup_add(counts) end
end

lib.dedup_counts = function()
  local counts = { unique = 0, duplicates = 0 }
  if grouping then atEnd(function() lib.dedup_add(counts) end) end
  return counts
end

lib.dedup_add = function(counts)
  local bucket = key('seen', text(math.floor(now / lib.dedup_grain)))
  for field, count in pairs(counts) do
    if count > 0 and call('HINCRBY', bucket, field, count) == count then call('PEXPIRE', bucket, 7200000) end
  end
end

-- Counts one sighting of a message. A call that is repeated because it got no answer has the same `token` (without a
-- blank), and is not counted again. Returns whether the sighting is the first one in the lifetime of the mark, and then
-- the mark as it was before; nil if there was none.
lib.dedup_see = function(markHash, token)
  local new = { ends = now + lib.dedup_ttl, token = token, last = token, place = '-' }
  local before = call('SET', key('mark', markHash), lib.dedup_text(new), 'NX', 'GET', 'PX', text(lib.dedup_ttl + 10000))
  local mark = before and lib.dedup_parse(before)
  if not mark then
    if before then lib.dedup_write(markHash, new) end
    lib.dedup_count(true)
    return true, nil
  end
  if mark.token == token then return true, mark end
  if mark.last ~= token then
    mark.last = token
    lib.dedup_write(markHash, mark)
    lib.dedup_count(false)
  end
  return false, mark
end

-- Counts a repeated sighting of a message, as `dedup_see` does. The first sighting was counted without a mark;
-- `firstSeenAt` is its time.
lib.dedup_again = function(markHash, token, firstSeenAt)
  local ends = firstSeenAt + lib.dedup_ttl
  if ends > now and call('EXISTS', key('mark', markHash)) == 0 then
    lib.dedup_write(markHash, { ends = ends, token = '-', last = token, place = '-' })
    lib.dedup_count(false)
  else lib.dedup_see(markHash, token) end
end

-- Writes into a mark where history stores its message, so that a repeated call gets the same answer.
lib.dedup_place = function(markHash, place)
  local mark = lib.dedup_mark(markHash)
  if not mark then return end
  mark.place = place
  lib.dedup_write(markHash, mark)
end

-- act: stats
-- Adds up the counters of the last buckets, including the current one. a: 1 how many buckets. Returns {seen, unique,
-- duplicates}.
-- class: allow_oom
-- needs: lib-dedup
acts['dedup-stats'] = function(a)
  local current = math.floor(now / lib.dedup_grain)
  local sums = { 0, 0 }
  for bucket = current - tonumber(a[1]) + 1, current do
    local counted = call('HMGET', key('seen', text(bucket)), 'unique', 'duplicates')
    for i = 1, 2 do sums[i] = sums[i] + tonumber(counted[i] or 0) end
  end
  return { text(sums[1] + sums[2]), text(sums[1]), text(sums[2]) }
end

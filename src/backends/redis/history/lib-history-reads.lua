-- What the acts that read history share.
-- What a mark notes, as an answer: {seq, at}.
lib.history_placed = function(place)
  local at, seq = string.match(place, '^(%d+)-(%d+)$')
  return { seq, at }
end

-- Streams that one read forgets at most.
lib.history_due = 500

-- The last shown entry of a stream before this id, or nil.
lib.history_before = function(member, max, min)
  local sth = string.match(member, '([^%z]*)$')
  local entry = call('XREVRANGE', key('stream', sth), max, min, 'COUNT', 1)[1]
  if not entry then return nil end
  local row = { member = member, id = entry[1], at = tonumber(string.match(entry[1], '^%d+')), payload = false }
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'payload' or entry[2][i] == 'spill' then row.payload = true end
  end
  return row
end

-- Every shown message of the partition, newest first: a merge of the streams, each opened only once the merge has come to its last write.
lib.history_backwards = function(retentionMs)
  local min = text(math.max(0, now - retentionMs + 1))
  local heads, opened, upcoming = {}, 0, nil
  local function nextStream()
    local found = call('ZREVRANGE', key('streamgone'), opened, opened, 'WITHSCORES')
    opened = opened + 1
    upcoming = found[1] and { member = found[1], at = tonumber(found[2]) - retentionMs } or nil
  end
  local function newest()
    local best = nil
    for i, head in ipairs(heads) do
      if not best or head.at > heads[best].at then best = i end
    end
    return best
  end
  nextStream()
  return function()
    local best = newest()
    while upcoming and (not best or upcoming.at >= heads[best].at) do
      heads[#heads + 1] = lib.history_before(upcoming.member, '+', min)
      nextStream()
      best = newest()
    end
    if not best then return nil end
    local row = heads[best]
    local earlier = lib.history_before(row.member, '(' .. row.id, min)
    if earlier then heads[best] = earlier else table.remove(heads, best) end
    return row
  end
end

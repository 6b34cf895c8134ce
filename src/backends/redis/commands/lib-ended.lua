-- Ended commands: their records, results and names stand in keys by user and span of time, and a span goes as a whole, by one UNLINK. A span
-- is half of the idempotency window long, and named by when it began. What is past its time is hidden by its stamp until then.
-- needs: lib-record
lib.ended_grace = 3600000
-- A result is kept this much longer than it is shown (retentionMs), for the mailboxes that it is fetched for.
lib.ended_fetched = 60000

-- A key of a user and span.
lib.ended_key = function(kind, uh, span)
  return key(kind, uh .. ':' .. span)
end

-- When the span began that `now` is in, as text.
lib.ended_began = function(length)
  return text(now - now % length)
end

-- When the spans of a user began, the newest first.
lib.ended_spans = function(uh)
  return fact('spans:' .. uh, function() return call('ZREVRANGE', key('spans', uh), 0, -1) end)
end

-- The span for what ends now, opened where it is the first of its user.
lib.ended_open = function(rec, kept)
  local length = math.max(1000, math.floor(kept / 2))
  local span, spans = lib.ended_began(length), lib.ended_spans(rec.uh)
  for _, known in ipairs(spans) do
    if known == span then return span end
  end
  local over = tonumber(span) + length + kept
  call('ZADD', key('spans', rec.uh), text(over), span)
  call('ZADD', key('endedspans'), text(over), rec.uh .. '\0' .. span .. '\0' .. rec.userId)
  table.insert(spans, 1, span)
  for _, kind in ipairs({ 'ended', 'endednames' }) do
    expire(lib.ended_key(kind, rec.uh, span), over - now + lib.ended_grace)
  end
  return span
end

-- Keeps the result of what ends now, in a span of its own length: results may go before records do. Answers the span.
lib.ended_result = function(rec, result, settings)
  local shown = math.min(settings.retentionMs, settings.terminalMs)
  local length = math.max(1000, math.floor(shown / 4))
  local span = lib.ended_began(length)
  local name = lib.ended_key('results', rec.uh, span)
  local known = fact('opened:' .. name, function() return call('EXISTS', name) end)
  set(name, rec.name, result)
  if known == 0 then expire(name, length + shown + lib.ended_fetched) end
  return span
end

-- The recorded result of a command; false where there is none, or it was recorded `retentionMs` ago or longer.
lib.commands_result = function(rec, retentionMs)
  if rec.stage ~= 'terminal' or not rec.resultIn then return false end
  if tonumber(rec.terminalAt) + tonumber(retentionMs) <= now then return false end
  return get(lib.ended_key('results', rec.uh, rec.resultIn), rec.name)[1]
end

-- The record of an ended command; nil where there is none, or none any more.
lib.ended_read = function(uh, name)
  for _, span in ipairs(lib.ended_spans(uh)) do
    local whole = get(lib.ended_key('ended', uh, span), name)[1]
    if whole then
      local rec = lib.commands_parse(lib.commands_split(whole))
      if tonumber(rec.forgetAt) <= now then return nil end
      rec.span = span
      return rec
    end
  end
  return nil
end

-- Puts a command that ends now among the ended ones.
lib.ended_add = function(rec, kept)
  rec.span = lib.ended_open(rec, kept)
  put(lib.ended_key('endednames', rec.uh, rec.span), '0', rec.clientId .. '\0' .. rec.commandId)
  local second = text(math.floor(tonumber(rec.forgetAt) / 1000))
  local counted = fact('ended:' .. second, function()
    local counted = { count = 0 }
    atEnd(function()
      if counted.count > 0 then call('HINCRBY', key('endedcount'), second, counted.count) end
    end)
    return counted
  end)
  counted.count = counted.count + 1
  if not grouping then call('HINCRBY', key('endedcount'), second, 1) end
end

-- How many ended commands are not past their time, to the second.
lib.ended_count = function()
  local flat, count, second = call('HGETALL', key('endedcount')), 0, math.floor(now / 1000)
  for i = 1, #flat, 2 do
    if tonumber(flat[i]) > second then count = count + tonumber(flat[i + 1]) end
  end
  return count
end

-- Drops the counts of seconds that are past.
lib.ended_sweep_counts = function()
  local second, swept = math.floor(now / 1000), tonumber(call('HGET', KEYS[1], 'counted') or 0)
  if swept >= second then return end
  if call('EXISTS', key('endedcount')) == 1 then
    local past = {}
    for _, field in ipairs(call('HKEYS', key('endedcount'))) do
      if tonumber(field) <= second then past[#past + 1] = field end
    end
    for i = 1, #past, 1000 do call('HDEL', key('endedcount'), unpack(past, i, math.min(#past, i + 999))) end
  end
  call('HSET', KEYS[1], 'counted', text(second))
end

-- Forgets at most `limit` spans that are over. True when there are more.
lib.ended_sweep = function(limit)
  lib.ended_sweep_counts()
  local over = call('ZRANGEBYSCORE', key('endedspans'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  for i = 1, math.min(limit, #over) do
    local uh, span, userId = string.match(over[i], '^(%Z*)%z(%Z*)%z(.*)$')
    call('UNLINK', lib.ended_key('ended', uh, span), lib.ended_key('endednames', uh, span))
    call('ZREM', key('spans', uh), span)
    call('ZREM', key('endedspans'), over[i])
    if call('EXISTS', key('spans', uh), key('livenames', uh)) == 0 then call('ZREM', key('cmdusers'), userId .. '\0' .. uh) end
  end
  return #over > limit
end

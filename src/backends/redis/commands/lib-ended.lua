-- Stores and reads ended commands. Their records and results are in keys by user and span of time (see lib-spans.lua).
-- A span of records is half as long as the idempotency window. Each record says when it is forgotten. From then on it
-- is ignored, although it stays in Redis until its span is removed.
-- needs: lib-record, lib-shares, lib-spans
-- How much longer a result is kept than it is shown, ms. A row of a mailbox may still name it.
lib.ended_fetched = 60000
lib.ended_no_room = '-'

-- Returns the start of the current span of this length (ms), as text.
lib.ended_began = function(length)
  return text(now - now % length)
end

-- Returns the name of the span for the record of a command that ends now, and registers the span if it is new.
lib.ended_open = function(rec, window)
  local length = math.max(1000, math.floor(window / 2))
  local began = now - now % length
  local span = text(began) .. '.' .. text(window)
  lib.spans_open(rec, span, began + length + window)
  return span
end

-- Returns the key of the results of a user that were recorded in a span.
lib.ended_results = function(rec, span)
  return lib.spans_key(rec.uh, 'r' .. span)
end

-- Returns the span for the results of commands that end now, when it began, and when it is removed. Spans of results
-- have a length of their own, because results may be removed before records.
lib.ended_span_of_results = function(settings)
  local shown = math.min(settings.retentionMs, settings.terminalMs)
  local length = math.max(1000, math.floor(shown / 4))
  local began = lib.ended_began(length)
  return 'r' .. began, began, tonumber(began) + length + shown + lib.ended_fetched
end

-- Keeps the result of a command that ends now, and returns the result's span. Returns '-' if the user has no room for
-- the result in the share result_bytes.
lib.ended_result = function(rec, result, settings)
  if lib.shares_refusal(settings.shares.r, 'r', rec.uh, #result) then return lib.ended_no_room end
  local span, began, over = lib.ended_span_of_results(settings)
  lib.spans_open(rec, span, over)
  set(lib.ended_results(rec, began), rec.name, result)
  lib.shares_take('r', rec.uh, #result, span)
  return began
end

-- Reads the recorded result of a command; false if there is none, or it was recorded `retentionMs` ago or longer.
lib.commands_result = function(rec, retentionMs)
  if rec.stage ~= 'terminal' or not rec.resultIn or rec.resultIn == lib.ended_no_room then return false end
  if tonumber(rec.terminalAt) + tonumber(retentionMs) <= now then return false end
  return get(lib.ended_results(rec, rec.resultIn), rec.name)
end

-- Reads the record of an ended command; nil if there is none, or it is due to be forgotten.
lib.ended_read = function(uh, name)
  for _, span in ipairs(lib.spans_of(uh).ended) do
    local whole = get(lib.spans_key(uh, span), name)
    local rec = whole and lib.commands_parse(lib.commands_split(whole))
    if rec and tonumber(rec.forgetAt) > now then
      rec.span = span
      return rec
    end
  end
  return nil
end

-- Stores the record of a command that ends now among the ended commands.
lib.ended_add = function(rec, window)
  rec.span = lib.ended_open(rec, window)
  -- If no node ran for a while, a command may end so late that its name is removed before its record. It then gets a
  -- second name.
  if now > tonumber(rec.admittedAt) + lib.spans_life then lib.spans_name(rec, window) end
  local second = text(math.floor(tonumber(rec.forgetAt) / 1000))
  if not grouping then return call('HINCRBY', key('endedcount'), second, 1) end
  local counted = fact('ended', second, lib.ended_counted)
  counted.count = counted.count + 1
end

-- Begins the count of the commands that end in this call and are to be forgotten in the same second.
lib.ended_counted = function(second)
  local counted = { count = 0 }
  atEnd(function() call('HINCRBY', key('endedcount'), second, counted.count) end)
  return counted
end

-- Counts the ended commands whose records are not forgotten yet. The count is exact to the second.
lib.ended_count = function()
  local flat, count, second = call('HGETALL', key('endedcount')), 0, math.floor(now / 1000)
  for i = 1, #flat, 2 do
    if tonumber(flat[i]) > second then count = count + tonumber(flat[i + 1]) end
  end
  return count
end

-- Removes the counts of records that were to be forgotten in past seconds.
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

-- Removes at most `limit` spans whose time is over. Returns true if there are more.
lib.ended_sweep = function(limit)
  lib.ended_sweep_counts()
  return lib.spans_sweep(limit)
end

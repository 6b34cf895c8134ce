-- Divides the index of commands' rows into spans of time. Each span of a user has a HASH `cmdrows`, which is removed as
-- a whole when the rows of the span are too old. A span is named by its start. Field `s` of a user's `streamheads`
-- lists the user's spans as `<start>:<time of removal>`, oldest first and separated by blanks. The ZSET `rowspans` has
-- the spans of all users, by their time of removal.
-- needs: lib-history

-- The length of a span is an eighth of the retention, and at most 12 hours.
lib.history_spans_kept = 8
lib.history_longest_span = 43200000

lib.history_span_length = function(retentionMs)
  return math.max(1, math.min(lib.history_longest_span, math.floor(retentionMs / lib.history_spans_kept)))
end

-- Returns the start of the span that the first row of this time opens.
lib.history_span_start = function(at, retentionMs)
  return at - at % lib.history_span_length(retentionMs)
end

lib.history_span_key = function(uh, start)
  return key('cmdrows', uh, text(start))
end

-- Returns the spans of a user, each {start, over}, oldest first.
lib.history_spans = function(uh)
  return fact('historySpans', uh, lib.history_read_spans)
end
lib.history_read_spans = function(uh)
  local spans = {}
  for start, over in string.gmatch(get(key('streamheads', uh), 's') or '', '(%d+):(%d+)') do
    spans[#spans + 1] = { start = tonumber(start), over = tonumber(over) }
  end
  return spans
end

lib.history_write_spans = function(uh, spans)
  local texts = {}
  for i, span in ipairs(spans) do texts[i] = text(span.start) .. ':' .. text(span.over) end
  set(key('streamheads', uh), 's', #texts > 0 and table.concat(texts, ' '))
end

-- Returns the last span that starts at this time or before it; nil if there is none.
lib.history_span_of = function(spans, at)
  for i = #spans, 1, -1 do
    if spans[i].start <= at then return spans[i] end
  end
  return nil
end

-- Returns the start of the span for a row of this time. Opens the span if there is none, and moves its time of removal
-- if the row is kept for longer, because RETENTION_MS was raised.
lib.history_open_span = function(row, at)
  local spans, start = lib.history_spans(row.uh), lib.history_span_start(at, row.retentionMs)
  local span = lib.history_span_of(spans, at)
  if span and span.start >= start and span.over >= at + row.retentionMs then return span.start end
  if not span or span.start < start then
    lib.history_sweep_spans(3)
    spans, span = lib.history_spans(row.uh), { start = start }
    spans[#spans + 1] = span
    table.sort(spans, function(a, b) return a.start < b.start end)
  end
  span.over = start + lib.history_span_length(row.retentionMs) + row.retentionMs
  lib.history_write_spans(row.uh, spans)
  call('ZADD', key('rowspans'), text(span.over), row.uh .. '\0' .. text(span.start))
  expire(lib.history_span_key(row.uh, span.start), span.over + lib.history_grace - now)
  return span.start
end

-- Removes at most `count` spans whose time is over.
lib.history_sweep_spans = function(count)
  for _, member in ipairs(call('ZRANGEBYSCORE', key('rowspans'), '-inf', text(now), 'LIMIT', 0, count)) do
    local uh, start = string.match(member, '^(.*)%z(.*)$')
    lib.history_remove_span(uh, tonumber(start))
    call('ZREM', key('rowspans'), member)
  end
end

lib.history_remove_span = function(uh, start)
  call('UNLINK', lib.history_span_key(uh, start))
  local spans = lib.history_spans(uh)
  for i, span in ipairs(spans) do
    if span.start == start then
      table.remove(spans, i)
      return lib.history_write_spans(uh, spans)
    end
  end
end

-- Spans of time. The records, names and results of a user's commands are in keys. Each key holds one span of time and
-- is removed as a whole. `spans:<user's hash>` has the spans of a user, by when they are removed; `endedspans` has
-- those of all users. The name of a span says what its key holds and when the span began: `<began>.<window>` records of
-- commands that ended in it; `n<began>.<window>` names of commands that were admitted in it; `r<began>` results of
-- commands that ended in it. `window` is the idempotency window of those records: records with different windows never
-- share a span.
-- needs: lib-shares
lib.spans_grace = 3600000
-- The longest time between a command's admission and its end, ms: the longest connect budget, the longest answer
-- budget, and a minute for the node that ends it.
lib.spans_life = 660000

-- Reads the spans of a user, ordered by time of removal, the latest first. `ended`: a list of the spans of records;
-- `named`: a list of the spans of names; `known`: a set of all spans.
lib.spans_of = function(uh)
  return fact('spans', uh, lib.spans_read)
end
lib.spans_read = function(uh)
  local spans = { ended = {}, named = {}, known = {} }
  for _, name in ipairs(call('ZREVRANGE', key('spans', uh), 0, -1)) do
    lib.spans_list(spans, name, -1)
    spans.known[name] = true
  end
  return spans
end

-- Adds a span to the list of its kind: at the front if `at` is 1, else at the end.
lib.spans_list = function(spans, name, at)
  local lists = { [''] = spans.ended, n = spans.named }
  local list = lists[string.match(name, '^%l?')]
  if list then table.insert(list, at == 1 and 1 or #list + 1, name) end
end

-- Returns the key that holds a user's span. `spans_parts` has the parts of the names that this call has used.
lib.spans_parts = {}
lib.spans_key = function(uh, name)
  local of = lib.spans_parts[name]
  if not of then
    local letter = string.match(name, '^%l')
    of = { kind = ({ n = 'names', r = 'results' })[letter] or 'ended', began = letter and string.sub(name, 2) or name }
    lib.spans_parts[name] = of
  end
  return key(of.kind, uh, of.began)
end

-- Registers a span of a user, to be removed at the time `over`. Returns false if it was registered before.
lib.spans_open = function(user, name, over)
  local spans = lib.spans_of(user.uh)
  if spans.known[name] then return false end
  call('ZADD', key('spans', user.uh), text(over), name)
  call('ZADD', key('endedspans'), text(over), user.uh .. '\0' .. name .. '\0' .. user.userId)
  put(key('cmdusers'), '0', user.userId .. '\0' .. user.uh)
  -- Results are removed on time. The other keys are removed by the sweep, and expire only if no node runs any more.
  expire(lib.spans_key(user.uh, name), over - now + (string.match(name, '^r') and 0 or lib.spans_grace))
  lib.spans_list(spans, name, 1)
  spans.known[name] = true
  return true
end

-- Removes at most `limit` spans whose time is over. Returns true if there are more.
lib.spans_sweep = function(limit)
  local over = call('ZRANGEBYSCORE', key('endedspans'), '-inf', text(now), 'LIMIT', 0, limit + 1)
  for i = 1, math.min(limit, #over) do
    local uh, name, userId = string.match(over[i], '^(%Z*)%z(%Z*)%z(.*)$')
    call('UNLINK', lib.spans_key(uh, name))
    local counted = ({ n = 'm', r = 'r' })[string.match(name, '^%l?')]
    if counted then lib.shares_return(counted, uh, name) end
    call('ZREM', key('spans', uh), name)
    call('ZREM', key('endedspans'), over[i])
    if call('EXISTS', key('spans', uh)) == 0 then call('ZREM', key('cmdusers'), userId .. '\0' .. uh) end
  end
  return #over > limit
end

-- Returns the span for the names of commands that are admitted now, and when it is removed. A span never crosses an
-- hour.
lib.spans_of_names = function(window)
  local hour, length = now - now % 3600000, math.min(3600000, math.max(60000, math.floor(window / 2)))
  local began = hour + math.floor((now - hour) / length) * length
  return 'n' .. text(began) .. '.' .. text(window), began + length + lib.spans_life + window
end

-- Adds the name of a command to the listings by name. The name stays until its span is removed, so that the end of a
-- command need not remove it. Returns whether the span is new, and then the span.
lib.spans_name = function(rec, window)
  local name, over = lib.spans_of_names(window)
  local first = lib.spans_open(rec, name, over)
  put(lib.spans_key(rec.uh, name), '0', rec.clientId .. '\0' .. rec.commandId)
  return first, name
end

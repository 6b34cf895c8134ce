-- How commands are found: by deadline, in spans of time, and by time of admission. commands/record.ts defines the
-- format of a record.

-- library: lib-due
-- Finds commands that are due. The reservations of a scope (`reserved`) are sorted by deadline, so they serve as the
-- index of deadlines. `scopedue` tells which scopes to search: it contains the hash of each scope, sorted by a time
-- that is never later than the scope's earliest deadline. An admission lowers that time, and a search for due commands
-- raises it. An end does not change it, so most calls write nothing here. `connectdue` contains the commands that were
-- never queued, sorted by connect deadline; a name there consists of the command's deadline (13 digits), its client's
-- hash and its id.

-- One search reads at most `limit` plus this many scopes. It raises the time of each scope without due commands, so
-- that the next search reaches other scopes.
lib.due_scopes = 256
-- One search stops once it has found `limit` times this many commands.
lib.due_spare = 10

-- Adds the due commands of a scope to `found`. If none is due, the scope is searched again at its earliest deadline.
lib.due_in_scope = function(sh, limit, found)
  local reserved = key('reserved', sh)
  local due = call('ZRANGEBYSCORE', reserved, '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do lib.due_found(found, due[i], due[i + 1]) end
  if #due > 0 then return end
  local first = call('ZRANGE', reserved, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', key('scopedue'), first[2], sh) else call('ZREM', key('scopedue'), sh) end
end

-- Captures the name of a command, `<user>NUL<client>NUL<command>`: the 5th to 7th field of its request.
lib.due_name = '^%Z*%z%Z*%z%Z*%z%Z*%z(%Z*%z%Z*%z%Z*)%z'

-- Adds the commands that are past their connect deadline to `found`.
lib.due_unconnected = function(limit, found)
  local due = call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #due, 2 do
    local request = call('HGET', key('client', string.sub(due[i], 14, 35)), 'a' .. string.sub(due[i], 36))
    if request then lib.due_found(found, string.match(request, lib.due_name), due[i + 1])
    else call('ZREM', key('connectdue'), due[i]) end
  end
end

lib.due_found = function(found, name, since)
  if found.known[name] then return end
  found.known[name] = true
  found.list[#found.list + 1] = { since = tonumber(since), name = name }
end

-- Finds the commands that are past their deadline or connect deadline. The first result is a list of names, the longest
-- due first, each with the time since which the command is due. The list has at least `limit` names if so many are due.
-- The second result is whether another search would find more in other scopes.
lib.due_find = function(limit)
  local found, budget = { list = {}, known = {} }, limit + lib.due_scopes
  lib.due_unconnected(limit, found)
  local scopes = call('ZRANGEBYSCORE', key('scopedue'), '-inf', text(now), 'LIMIT', 0, budget)
  for _, sh in ipairs(scopes) do
    if #found.list >= limit * lib.due_spare then break end
    lib.due_in_scope(sh, limit, found)
  end
  table.sort(found.list, function(a, b) return a.since < b.since end)
  return found.list, #scopes == budget and #found.list < limit
end

-- library: lib-spans
-- Spans of time. The records, names and results of a user's commands are stored in one key for each span of time, which
-- is removed as a whole. `spans:<user's hash>` contains the spans of a user, scored by their time of removal;
-- `endedspans` contains the spans of all users. The name of a span tells what its key contains and when the span began:
-- `<began>.<window>` records of commands that ended in it; `n<began>.<window>` names of commands that were admitted in
-- it; `r<began>` results of commands that ended in it; `d<began>` the order of the marks of messages that were set in
-- it. `window` is the idempotency window of those records: records with different windows never share a span. A span of
-- records is half as long as the window. Each record says when it is forgotten; after that time it is ignored, although
-- it stays in Redis until its span is removed. For each span of records, a second key, `endorder`, contains the order
-- of the records (see lib-bounded).
-- needs: lib-shares

-- Returns the spans of a user whose names begin with this letter ('' for records). The span that is removed last comes
-- first.
lib.spans_of = function(uh, letter)
  local spans = {}
  for _, name in ipairs(call('ZREVRANGE', key('spans', uh), 0, -1)) do
    if string.match(name, '^%l?') == letter then spans[#spans + 1] = name end
  end
  return spans
end

-- Returns the key that holds a user's span.
lib.spans_key = function(uh, name)
  local letter, began = string.match(name, '^(%l?)(.*)$')
  return key(({ [''] = 'ended', n = 'names', r = 'results', d = 'markorder' })[letter], uh, began)
end

-- Removes the counts of records whose time to be forgotten is over.
lib.spans_sweep_counts = function()
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

-- Removes at most `limit` spans whose time is over.
lib.spans_sweep = function(limit)
  for _, member in ipairs(call('ZRANGEBYSCORE', key('endedspans'), '-inf', text(now), 'LIMIT', 0, limit)) do
    local uh, name, userId = string.match(member, '^(%Z*)%z(%Z*)%z(.*)$')
    local letter = string.match(name, '^%l?')
    call('UNLINK', lib.spans_key(uh, name))
    if letter == '' then
      call('UNLINK', key('endorder', uh, name))
      lib.shares_return('m', uh, 'k' .. name)
    end
    lib.shares_return(({ [''] = 'e', n = 'm', r = 'r', d = 'd' })[letter], uh, name)
    call('ZREM', key('spans', uh), name)
    call('ZREM', key('endedspans'), member)
    if call('EXISTS', key('spans', uh)) == 0 then
      for _, index in ipairs(lib.spans_indexes) do call('ZREM', key(index), userId .. '\0' .. uh) end
    end
  end
end

-- The indexes in which a user with a span is listed.
lib.spans_indexes = { 'cmdusers', 'endedoldest', 'endedover', 'markoldest', 'markover' }

-- library: lib-bounded
-- Keeps two shares within their totals: removes the oldest ended commands (`e`) and marks of messages (`d`). For each
-- user, span and share, a LIST contains the entries in the order in which they were written, each as `<time> <name>`;
-- the entry counts until that time. The first element of a list is treated as the oldest, although relays write their
-- own times, which differ by at most a second. One index contains for each user the time of the oldest entry, or an
-- earlier time, which a search corrects. Another index contains the users who were over their guarantee when they last
-- got an entry, scored by the number of their entries then.
-- needs: lib-shares, lib-spans

-- The most entries that one call removes.
lib.bounded_most = 256
-- The most users that one call reads to find the oldest entry of all.
lib.bounded_looks = 1024

-- The parameters of each share for the functions below. `spans`: the letter of its spans (see spans_of). `order`: the
-- kind of key that contains the order of a span.
lib.bounded_of = {
  e = { share = 'e', spans = '', order = 'endorder', over = 'endedover', oldest = 'endedoldest' },
  d = { share = 'd', spans = 'd', order = 'markorder', over = 'markover', oldest = 'markoldest' },
}

lib.bounded_order = function(of, uh, span)
  return key(of.order, uh, of.share == 'd' and string.sub(span, 2) or span)
end

-- Returns the oldest entry of a user: its time, its span and its name; nil if there is none.
lib.bounded_oldest = function(of, uh)
  local spans = lib.spans_of(uh, of.spans)
  for i = #spans, 1, -1 do
    local at, name = string.match(call('LINDEX', lib.bounded_order(of, uh, spans[i]), 0) or '', '^(%d+) (.*)$')
    if at then return tonumber(at), spans[i], name end
  end
end

-- Returns the hash and the id of the user who has the oldest entry of all, and its time. Returns nil if there are no
-- entries, or if the call has read `bounded_looks` users. `life`: how long an entry that is written now counts.
lib.bounded_first = function(of, life)
  local index = key(of.oldest)
  while lib.bounded_looks > 0 do
    lib.bounded_looks = lib.bounded_looks - 1
    local first = call('ZRANGE', index, 0, 0, 'WITHSCORES')
    if not first[1] then return nil end
    local known = tonumber(first[2])
    local userId, uh = string.match(first[1], '^(.*)%z(.*)$')
    local at = lib.bounded_oldest(of, uh)
    if at and at <= known then return uh, userId, at end
    -- An entry that a user without entries writes next counts until that time, or 250 ms less if the clock of the relay
    -- is behind.
    if not at and known >= now + life then return nil end
    call('ZADD', index, text(at or now + life), first[1])
  end
end

-- Removes at most `most` of a user's oldest entries from the order and from the amounts of the share. Calls `drop` with
-- the hash and id of the user, the span, and the removed entries. Returns how many there were.
lib.bounded_drop = function(of, uh, userId, most, drop)
  local _, span = lib.bounded_oldest(of, uh)
  if not span then return 0 end
  local dropped = call('LPOP', lib.bounded_order(of, uh, span), most)
  lib.shares_take(of.share, uh, -#dropped, span)
  drop(uh, userId, span, dropped)
  return #dropped
end

-- Removes entries that no longer count. Then, until the total is within its limit, removes the oldest entry of the user
-- who is most over the guarantee, or the oldest entry of all if no user is over. Returns true if the caller must call
-- again.
lib.bounded_keep = function(of, bounds, drop)
  local excess, left = lib.shares_held(of.share) - bounds.total, lib.bounded_most
  local uh, userId, at = lib.bounded_first(of, bounds.life)
  while excess > 0 and left > 0 and uh and at <= now do
    lib.bounded_drop(of, uh, userId, 1, drop)
    excess, left = excess - 1, left - 1
    uh, userId, at = lib.bounded_first(of, bounds.life)
  end
  while excess > 0 and left > 0 do
    local most
    uh, userId, most = lib.shares_most_over(of.share, of.over, bounds.guarantee)
    if not uh then uh, userId = lib.bounded_first(of, bounds.life) end
    local count = uh and lib.bounded_drop(of, uh, userId, math.min(excess, left, most or 1), drop) or 0
    if count == 0 then return lib.bounded_looks == 0 end
    excess, left = excess - count, left - count
  end
  return excess > 0
end

-- library: lib-reduce
-- Reduces the record of an ended command to a mark: in the place of the record stands `m NUL <until> NUL <admitted> NUL
-- <ended> NUL <outcome> NUL <execution> NUL <code> NUL <1 if it had a result> NUL <digest> NUL`. If no room for a mark
-- is reserved, no mark is written. `reduced` contains the time until which listings lack commands, of a user or of any
-- user, and the greatest id of a user's commands that left no mark.
-- needs: lib-newest, lib-shares, lib-spans

-- The longest time between the admission and the end of a command, ms.
lib.reduce_life = 660000
-- How long after the end of a command a mailbox row may still refer to its result, in ms.
lib.reduce_named = 60000

-- Returns the span of names for commands that were admitted at this time.
lib.reduce_names = function(at, window)
  local hour = at - at % 3600000
  local length = math.min(3600000, math.max(60000, math.floor(tonumber(window) / 2)))
  return 'n' .. text(hour + math.floor((at - hour) / length) * length) .. '.' .. window
end

-- Moves `count` marks of a user from the span of their names to the span of their ends: they are now given back when
-- the latter is removed.
lib.reduce_move = function(uh, names, ended, count)
  if not call('ZSCORE', key('spans', uh), names) then return end
  lib.shares_add(names .. ':' .. uh, -count)
  lib.shares_add('k' .. ended .. ':' .. uh, count)
end

-- Records, for a user or for all users (`name`), until when listings lack commands, and the greatest id that left no
-- mark ('' if each command has one). Returns whether this is the first such id.
lib.reduce_note = function(name, till, id)
  local known = call('HMGET', name, 'until', 'id')
  local before, greatest = tonumber(known[1] or 0), known[2] or ''
  if before <= now then greatest = '' end
  local first = greatest == '' and id ~= ''
  if lib.newest_before(greatest, id) then greatest = id end
  till = math.max(before, till)
  call('HSET', name, 'until', text(till), 'id', greatest)
  call('PEXPIRE', name, text(till - now + 60000))
  return first
end

-- Returns fields of a record. `fields`: their names, by their position in a record.
lib.reduce_read = function(whole, fields)
  local record, from = {}, 1
  for place = 1, table.maxn(fields) do
    local stop = string.find(whole, '\0', from, true) or #whole + 1
    if fields[place] then record[fields[place]] = string.sub(whole, from, stop - 1) end
    from = stop + 1
  end
  return record
end

-- Reduces a record, and returns its mark; nil if no mark is written. `together`: collects the changes that many records
-- share.
lib.reduce_record = function(uh, span, name, record, together, done)
  local admitted, ended, window = tonumber(record.admittedAt), tonumber(record.terminalAt), together.window
  local listed, of = record.clientId .. '\0' .. record.commandId, together.keys[admitted]
  if not of then
    local names = lib.reduce_names(admitted, window)
    of = { names = names, listed = lib.spans_key(uh, names), newest = lib.newest_key(admitted) }
    together.keys[admitted] = of
  end
  group(together.unlist, of.listed, listed)
  if ended > admitted + lib.reduce_life then
    group(together.unlist, lib.spans_key(uh, lib.reduce_names(ended, window)), listed)
  end
  group(together.unlist, of.newest, uh .. name)
  group(together.seconds, text(math.floor(tonumber(record.forgetAt) / 1000)), name)
  local had = record.resultIn ~= '' and record.resultIn ~= '-'
  -- A mailbox row may still refer to the result of a command that has just ended. Such a result is removed later, with
  -- its span.
  if had and ended + lib.reduce_named <= now then group(together.results, 'r' .. record.resultIn, name) end
  done.records, done.results = done.records + 1, done.results + (had and 1 or 0)
  local note = done.notes[uh] or { till = 0, id = '', userId = record.userId, marks = {} }
  done.notes[uh] = note
  note.till = math.max(note.till, tonumber(record.forgetAt))
  if record.unmarked == '1' then
    done.forgotten = done.forgotten + 1
    if lib.newest_before(note.id, record.commandId) then note.id = record.commandId end
    return nil
  end
  note.marks[of.names] = note.marks[of.names] or {}
  note.marks[of.names][span] = (note.marks[of.names][span] or 0) + 1
  return table.concat({
    'm', record.forgetAt, record.admittedAt, record.terminalAt, record.outcome, record.execution,
    string.match(record.error, '"code":"([%w_]+)"') or '', record.resultIn ~= '' and '1' or '', record.digest, '',
  }, '\0')
end

-- Reduces those records of a user that the entries of the order name, or removes them if they no longer count.
-- `fields`: as for reduce_read. `done`: counts the reduced records, and collects the arguments of reduce_note and
-- reduce_move.
lib.reduce_records = function(uh, span, entries, fields, done)
  local records, names, counts = lib.spans_key(uh, span), {}, {}
  local together = { unlist = {}, seconds = {}, results = {}, keys = {}, window = string.match(span, '%.(%d+)$') }
  local marks, gone = { 'HSET', records }, { 'HDEL', records }
  for i, entry in ipairs(entries) do
    local at, name = string.match(entry, '^(%d+) (.*)$')
    names[i], counts[i] = name, tonumber(at) > now
  end
  for i, whole in ipairs(call('HMGET', records, unpack(names))) do
    local record = whole and counts[i] and lib.reduce_read(whole, fields)
    local mark = record and lib.reduce_record(uh, span, names[i], record, together, done)
    if mark then append(marks, names[i], mark) elseif whole then append(gone, names[i]) end
  end
  if #marks > 2 then call(unpack(marks)) end
  if #gone > 2 then call(unpack(gone)) end
  for name, members in pairs(together.unlist) do call('ZREM', name, unpack(members)) end
  for second, ended in pairs(together.seconds) do
    if call('HINCRBY', key('endedcount'), second, -#ended) <= 0 then call('HDEL', key('endedcount'), second) end
  end
  for from, ended in pairs(together.results) do
    local results, bytes = lib.spans_key(uh, from), 0
    for _, result in ipairs(call('HMGET', results, unpack(ended))) do bytes = bytes + #(result or '') end
    call('HDEL', results, unpack(ended))
    lib.shares_take('r', uh, -bytes, from)
  end
end

-- library: lib-newest
-- The index of commands by time of admission. For each hour there is a ZSET of the commands that were admitted in it.
-- Admissions remove the names of commands that no longer exist, and the key of each hour expires.

lib.newest_hour = 3600000

-- Returns the key of the hour that a time (ms) is in.
lib.newest_key = function(at)
  return key('admitted', text(at - at % lib.newest_hour))
end

-- Whether the bytes of `a` sort before those of `b`. Lua's own comparison depends on the locale of the server.
lib.newest_before = function(a, b)
  for i = 1, math.min(#a, #b) do
    local left, right = string.byte(a, i), string.byte(b, i)
    if left ~= right then return left < right end
  end
  return #a < #b
end

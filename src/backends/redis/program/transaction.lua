-- The program of transactions: applies the acts of one tick, which a relay has decided by the rules of core. For each
-- act the call contains conditions that must still hold, guards with a limit, and writes that are merged by key. If
-- everything holds, each key is written by one command whose arguments are in ARGV already. If something does not hold,
-- `careful` decides the acts one by one, in order, and only the arguments of the acts that pass are written.
-- ARGV: 1 to 5 as in prelude.lua; 6 the relay's time; 7 how far it may be behind, and 8 ahead (ms); 9 the number of
-- acts; 10 the most rows of a stream; 11 how many rows beyond that may stay for a while; 12 '1' to decide the acts one
-- by one in any case; 13 the number of HASHes that are read; 14 how long history is kept (ms); 15 the most streams of a
-- user; then the sections below, each beginning with its number of items.
-- If a stream is not open, the call is repeated with the libraries of history (`lib`), which open the stream. Such a
-- call has only one stream of each user.
-- Returns {'OK' or 'WATCHED', the streams to trim and the letters of the shares beyond their totals, pairs of act and
-- place for each waiting command and each row with a mark, the values of the changed numbers, then {act, reason, value}
-- for each act that did not pass}; {'FENCED'} or {'LOST'} as in driver.lua; or {'CLOCK', time} if the relay's time is
-- too far from that of Redis.
-- An `index` tells which acts the arguments belong to, in pairs of bytes: the number of an act, and the number of its
-- arguments plus one (for numbers: what the act adds plus 64). A section that belongs to all acts has the index ''.
local call = redis.call
local find, match, sub, fmt, byte = string.find, string.match, string.sub, string.format, string.byte
local concat, floor = table.concat, math.floor
local a, p = ARGV, 16

-- Returns the next argument and advances.
local function take()
  p = p + 1
  return a[p - 1]
end

local function whole(number) return fmt('%d', number) end

-- Returns why a user may not take `by` more of a share, of which all users hold `all`; nil if the user may. This is the
-- rule of core/shares/shares.ts. A share with an index of users over their guarantee is never refused here: the excess
-- is removed after the call.
local function refusal(g, by, all)
  if by <= 0 or g.guarantee < 0 or g.over ~= '' then return nil end
  local wanted, after = g.own + by, all + by
  if g.total < 0 then return wanted > g.guarantee and 'share_exceeded' or nil end
  if wanted > g.guarantee and after > g.total * 0.75 then return 'share_exceeded' end
  if after <= g.total then return nil end
  local reserve = floor(g.total / 16)
  local free = g.total + reserve - after
  return (free < 0 or (wanted > 1 and wanted * reserve > free * free)) and 'store_full' or nil
end

-- Returns the milliseconds until a bucket has a token (the rule of core/rates.ts).
local function refill(g)
  return fmt('%d', math.max(1, math.ceil((g.held + 1 - g.burst) * 1000 / g.perSecond - 0.000001)))
end

-- Adds to `of` the amount that each act takes of a guard.
local function parts(of, g)
  local function note(act, by)
    of[act] = of[act] or {}
    table.insert(of[act], g)
    table.insert(of[act], by)
  end
  if g.share then
    for act, by in string.gmatch(g.index, '(%d+):(%-?%d+)') do note(act + 0, by + 0) end
  else
    for i = 1, #g.index, 2 do note(byte(g.index, i), byte(g.index, i + 1) - 64) end
  end
end

-- Decides which acts pass, in order, with the amounts that earlier acts took and gave back. `bad`: act -> {reason,
-- value}, from the comparisons. Returns act -> true for the acts that pass.
local function careful(count, bad, guards)
  local ok, of = {}, {}
  for _, g in ipairs(guards) do parts(of, g) end
  for act = 1, count do
    local list, why = of[act] or {}, bad[act]
    for i = 1, #list, 2 do
      local g, by = list[i], list[i + 1]
      if why then break end
      if g.share then
        local code = refusal(g, by, g.pool.held)
        why = code and { code, g.letter }
      elseif by > 0 and g.held + by > g.limit and (not g.within or g.within.held > g.above) then
        why = { g.code, g.perSecond and refill(g) or g.part }
      end
    end
    bad[act] = why
    if not why then
      ok[act] = true
      for i = 1, #list, 2 do
        local g, by = list[i], list[i + 1]
        if g.share then g.pool.held, g.own = g.pool.held + by, g.own + by else g.held = g.held + by end
      end
    end
  end
  return ok
end

-- The HASHes that the call reads: slot, key and fields of each. The first is the meta key.
local seen, keyOf, meta = {}, {}, nil
for _ = 1, a[13] do
  local slot, name, n = take(), take(), take() + 0
  local of = {}
  if n > 0 then
    local got = call('HMGET', name, unpack(a, p, p + n - 1))
    for i = 1, n do of[a[p + i - 1]] = got[i] end
    meta = meta or got
  end
  seen[slot], keyOf[slot] = of, name
  p = p + n
end

-- The fence, as in driver.lua.
local node = take()
local epoch, last = match(meta[3] or '', '^(%d+) (%d+)$')
if a[2] ~= '' then
  if epoch ~= a[3] then
    local known = call('HGET', node, 'epoch')
    if known and tonumber(known) > tonumber(a[3]) then return { 'FENCED' } end
    return { 'LOST' }
  end
  if last + 0 < a[5] + 0 then return { 'LOST' } end
end

-- The time: the relay's, if it is near the time of Redis and not earlier than the time that a heartbeat has stored.
local real
if a[1] ~= '' then real = a[1] + 0 else
  local time = call('TIME')
  real = time[1] * 1000 + floor(time[2] / 1000)
end
real = math.max(real, (meta[1] or 0) + 0)
local now = a[6] + 0
if now < (meta[1] or 0) + 0 or now < real - a[7] or now > real + a[8] then return { 'CLOCK', whole(real) } end

local bad, tight = nil, a[12] == '1'
local function differs(index, code, value)
  for i = 1, #index do
    local act = byte(index, i)
    bad = bad or {}
    bad[act] = bad[act] or { code, value or false }
  end
end
-- Comparisons: equal, starts with, contains. For each HASH its slot and the number of comparisons; for each of them the
-- field, the expected text and the acts. '' stands for an absent field, or for a count of 0.
for _ = 1, take() do
  local of, count = seen[take()], take()
  for i = p, p + 3 * count - 3, 3 do
    local v, expected = of[a[i]], a[i + 1]
    if (v or '') ~= expected and not (v == '0' and expected == '') then differs(a[i + 2], 'differs', v) end
  end
  p = p + 3 * count
end
for _ = 1, take() do
  local of, count = seen[take()], take()
  for i = p, p + 3 * count - 3, 3 do
    local v, expected = of[a[i]], a[i + 1]
    if not v or sub(v, 1, #expected) ~= expected then differs(a[i + 2], 'differs', v) end
  end
  p = p + 3 * count
end
local holds, closed = p, {}
for _ = 1, take() do
  local slot, count = take(), take()
  for i = p, p + 3 * count - 3, 3 do
    local v, expected = seen[slot][a[i]], a[i + 1]
    -- For the head of a stream, the expected text '' means: the stream is open, and its newest row is not too old.
    local at = v and expected == '' and match(v, '^%d+ (%d+)')
    if not lib and (not v or not find(v, expected, 1, true) or (at and at + a[14] <= now)) then
      differs(a[i + 2], 'closed')
      closed[slot] = math.min(closed[slot] or 255, byte(a[i + 2]))
    end
  end
  p = p + 3 * count
end
-- If the stream of a user is not open, later acts of this user are repeated together with the act that opens it, so
-- that their order is kept.
if next(closed) then
  p = holds
  for _ = 1, take() do
    local slot, count = take(), take()
    for i = p, p + 3 * count - 3, 3 do
      for act in string.gmatch(a[i + 2], '.') do
        if byte(act) > (closed[slot] or 255) then differs(act, 'closed') end
      end
    end
    p = p + 3 * count
  end
end
-- Reads a number and that many fields from the arguments. Returns the fields with states of a client's live commands
-- that are not among them.
local function unlisted(slot)
  local n, listed, found = take() + 0, {}, {}
  for i = p, p + n - 1 do listed[a[i]] = true end
  p = p + n
  for _, field in ipairs(call('HKEYS', keyOf[slot])) do
    if byte(field) == 115 and not listed[field] then found[#found + 1] = field end
  end
  return found
end
-- HASHes of clients that must have no live commands except the listed ones: slot, acts, number of fields, fields.
for _ = 1, take() do
  local slot, acts = take(), take()
  local other = unlisted(slot)[1]
  if other then differs(acts, 'differs', other) end
end
-- STRINGs that must equal a text ('' for an absent one): key, text, acts.
for _ = 1, take() do
  local name, expected, acts = take(), take(), take()
  local v = call('GET', name)
  if (v or '') ~= expected then differs(acts, 'differs', v) end
end
-- Leases: node, acts for which the lease must be held, acts for which it must be over. Deadlines: time, act, '1' if the
-- time must have come and '' if it must not.
local nodes = take()
for _ = 1, take() do
  local name, held, over = take(), take(), take()
  local lease = call('ZSCORE', nodes, name)
  if lease and lease + 0 <= real then differs(held, 'dead') else differs(over, 'alive') end
end
for _ = 1, take() do
  local at, acts, over = take(), take(), take()
  if (real >= at + 0) ~= (over == '1') then return { 'CLOCK', whole(real) } end
end
-- Ids that no ended command may have: key of the user's spans, prefix of the keys of records, name, acts.
local spans = {}
-- Captures the time at which an ended command is forgotten: the 26th field of a record, or the 2nd of a mark
-- (lib-reduce). Both may exist in Redis for longer.
local forgetAt, forgetMark = '^' .. string.rep('%Z*%z', 25) .. '(%d+)%z', '^m%z(%d+)%z'
for _ = 1, take() do
  local of, start, name, acts = take(), take(), take(), take()
  spans[of] = spans[of] or call('ZRANGE', of, 0, -1)
  for _, span in ipairs(spans[of]) do
    local record = find(span, '^%d') and call('HGET', start .. span, name)
    if record and (match(record, forgetMark) or match(record, forgetAt)) + 0 > now then differs(acts, 'known') end
  end
end

-- Guards. Scopes: ZSET of reservations, scope, limit, number of new reservations, number of ended ones, index.
local scopes, numbers, shares = {}, {}, {}
local named = take()
for s = 1, take() do
  local name, scope, limit, come, go, index = take(), take(), take() + 0, take() + 0, take() + 0, take()
  local held = call('ZCARD', name)
  scopes[s] = { held = held, before = held, limit = limit, code = 'capacity_exceeded', index = index, scope = scope, sum = come - go }
  if come > 0 and held + come > limit then tight = true end
end
-- Numbers in a HASH: slot, field, limit, code of the refusal, scope (0: the limit always holds), the number of
-- reservations of the scope above which the limit holds, sum, amount that is added, index.
for s = 1, take() do
  local slot, field, limit, code, scope, above = take(), take(), take() + 0, take(), scopes[take() + 0], take() + 0
  local sum, come, index = take() + 0, take() + 0, take()
  local held = (seen[slot][field] or 0) + 0
  numbers[s] = {
    slot = slot, field = field, held = held, before = held, limit = limit, sum = sum, index = index, code = code,
    within = scope, above = above, part = scope and 'scope' or false,
  }
  if come > 0 and held + come > limit then tight = true end
end
-- Shares: letter; fields of the user and of the span, or ''; guarantee (-1: no guard); total or -1; sum; amount that is
-- added; index; the index of users over their guarantee, and the user's member in it. The last two are '' if an excess
-- is refused.
local m, pools = seen.m, {}
for s = 1, take() do
  local g = { share = true, letter = take(), ownField = take(), span = take(), guarantee = take() + 0, total = take() + 0, sum = take() + 0 }
  g.come, g.index, g.over, g.member = take() + 0, take(), take(), take()
  g.pool = pools[g.letter] or { held = (m[g.letter] or 0) + 0, come = 0 }
  pools[g.letter] = g.pool
  g.pool.come = g.pool.come + g.come
  g.own = (m[g.ownField] or 0) + 0
  g.before = g.own
  shares[s] = g
end
for _, g in ipairs(shares) do
  if refusal(g, g.come, g.pool.held + g.pool.come - g.come) then tight = true end
end
-- Buckets: key, size, tokens per second, number of tokens taken, index. A bucket is a STRING `<missing tokens> <time>`,
-- by the time of Redis; a full bucket has no key. Fractions are rounded, so a millionth of a token is ignored.
local buckets = {}
for s = 1, take() do
  local name, burst, perSecond, come, index = take(), take() + 0, take() + 0, take() + 0, take()
  local missing, at = match(call('GET', name) or '0 0', '^(%S+) (%d+)$')
  missing = math.max(0, missing - math.max(0, real - at) * perSecond / 1000)
  buckets[s] = {
    name = name, held = missing, before = missing, burst = burst, limit = burst + 0.000001, perSecond = perSecond,
    sum = come, index = index, code = 'rate_limited',
  }
  if missing + come > burst + 0.000001 then tight = true end
end
local ok
if bad or tight then
  bad = bad or {}
  local guards = {}
  for _, list in ipairs({ scopes, numbers, shares, buckets }) do
    for _, g in ipairs(list) do guards[#guards + 1] = g end
  end
  ok = careful(a[9] + 0, bad, guards)
end

-- Counters: key, field, sum, index.
for _ = 1, take() do
  local name, field, sum, index = take(), take(), take() + 0, take()
  if ok then
    sum = 0
    for i = 1, #index, 2 do
      if ok[byte(index, i)] then sum = sum + byte(index, i + 1) - 1 end
    end
  end
  if sum ~= 0 then call('HINCRBY', name, field, sum) end
end
-- Writes: number of arguments before those of the acts, number of arguments of the acts, index, all arguments.
for _ = 1, take() do
  local before, words, index = take() + 0, take() + 0, take()
  if not ok then call(unpack(a, p, p + before + words - 1))
  elseif index == '' then
    if next(ok) then call(unpack(a, p, p + before - 1)) end
  else
    local list, at = { unpack(a, p, p + before - 1) }, p + before
    for i = 1, #index, 2 do
      local count = byte(index, i + 1) - 1
      if ok[byte(index, i)] then
        for j = at, at + count - 1 do list[#list + 1] = a[j] end
      end
      at = at + count
    end
    if #list > before then call(unpack(list)) end
  end
  p = p + before + words
end
for _, g in ipairs(scopes) do
  local after = ok and g.held or g.before + g.sum
  if g.before == 0 and after > 0 then call('ZADD', named, 0, g.scope) end
  if after == 0 and g.before > 0 then call('ZREM', named, g.scope) end
end
for _, g in ipairs(buckets) do
  local after = ok and g.held or g.before + g.sum
  local ms = fmt('%.0f', math.ceil(after * 1000 / g.perSecond) + 60000)
  if after > g.before then call('SET', g.name, fmt('%.6f %.0f', after, real), 'PX', ms) end
end
local counts = {}
for i, g in ipairs(numbers) do
  local after = ok and g.held or g.before + g.sum
  counts[i] = whole(after)
  if after ~= g.before then
    if after > 0 then call('HSET', keyOf[g.slot], g.field, counts[i])
    elseif g.field == 'n' then call('HDEL', keyOf[g.slot], 'n', 'o')
    else call('HDEL', keyOf[g.slot], g.field) end
  end
end

-- Links that come up before their queue moves: slot of the client, act, the texts before and after the last place.
for _ = 1, take() do
  local slot, act, start, rest = take(), take(), take(), take()
  if not ok or ok[byte(act)] then call('HSET', keyOf[slot], 'b', start .. (seen[slot].o or '0') .. rest) end
end
-- Queues that have moved to a link: slot of the client, act, mailbox of the link's node, user, client, number of
-- commands that were read, their fields. Commands that were admitted for the link since then are posted by name.
for _ = 1, take() do
  local slot, act, box, user, client, late = take(), take(), take(), take(), take(), {}
  local fields = unlisted(slot)
  if not ok or ok[byte(act)] then
    for _, field in ipairs(fields) do
      local place, stage = match(call('HGET', keyOf[slot], field), '^%Z*%z%Z*%z(%Z*)%z%Z*%z(%Z*)%z')
      if stage == 'queued' then late[#late + 1] = { place = place + 0, id = sub(field, 2) } end
    end
  end
  table.sort(late, function(x, y) return x.place < y.place end)
  for _, one in ipairs(late) do
    call('XADD', box, '*', 'kind', 'command', 'userId', user, 'clientId', client, 'commandId', one.id)
  end
end

-- Commands that wait: slot of the client, number of commands, acts. Then for each: field, the texts of its state before
-- and after its place, the least place before its own, and the mailbox of another node or ''; with a mailbox also the
-- request, waiters and params.
local placed, boxes = {}, {}
for _ = 1, take() do
  local slot, count, index = take(), take() + 0, take()
  local place, list = (seen[slot].o or 0) + 0, { 'HSET', keyOf[slot] }
  for i = 1, count do
    local act = byte(index, i)
    local field, start, rest, least, to, request, waits, params = unpack(a, p, p + 7)
    p = p + (to == '' and 5 or 8)
    if not ok or ok[act] then
      place = math.max(place, least + 0) + 1
      local state = start .. whole(place) .. rest
      placed[#placed + 1] = act
      placed[#placed + 1] = whole(place)
      list[#list + 1] = field
      list[#list + 1] = state
      if to ~= '' then
        local box = boxes[to] or { 'XADD', to, '*' }
        boxes[to] = box
        for _, word in ipairs({ 'kind', 'command', 'state', state, 'request', request }) do box[#box + 1] = word end
        if waits ~= '' then box[#box + 1], box[#box + 2] = 'waits', waits end
        if params ~= '' then box[#box + 1], box[#box + 2] = 'params', params end
      end
    end
  end
  if #list > 2 then
    list[#list + 1] = 'o'
    list[#list + 1] = whole(place)
    call(unpack(list))
  end
end
for _, box in pairs(boxes) do call(unpack(box)) end

-- Adds the place of a row to the ZSET of further places of a command, if its HASH is full (see lib-history-commands in
-- history-rows.lua).
local function morePlaces(heads, id, place)
  local tag = sub(KEYS[1], 1, -5)
  local name = tag .. 'cmdmore:' .. sub(heads, #tag + 13) .. ':' .. redis.sha1hex(id)
  call('ZADD', name, 0, place)
  call('PEXPIRE', name, a[14] + 3600000)
  local count = call('ZCARD', name)
  if count > 100 then call('ZREMRANGEBYLEX', name, '-', '(' .. fmt('%016.0f', math.max(0, now - a[14] + 1))) end
  if count > 100000 then call('ZREMRANGEBYRANK', name, 0, count - 100001) end
end

-- Streams: key, slot of the user's heads, field, suffix, slot of the places of rows, number of rows, acts, number of
-- arguments of the renewal, '1' if rows have marks, the arguments of the renewal (see transaction-writes.ts). Then the
-- rows, their commands, and their marks; a mark is '', or key, start of the value and expiry (ms). The value of a mark
-- ends with the place of its row.
local notes, heads, turns, places, expiries = {}, {}, {}, {}, {}
for _ = 1, take() do
  local stream, hs, field, suffix, cs, rows, acts, renewal = take(), take(), take(), take(), take(), take() + 0, take(), take() + 0
  local marked, from = take() == '1', p
  local texts, ids, marks = p + renewal - 1, p + renewal + rows - 1, p + renewal + 2 * rows - 1
  p = marks + 1 + (marked and rows or 0)
  local block, kept, ofCommands = {}, {}, false
  for i = 1, rows do
    if not ok or ok[byte(acts, i)] then
      block[#block + 1] = a[texts + i]
      kept[#kept + 1] = i
      ofCommands = ofCommands or a[ids + i] ~= ''
    end
  end
  if #block > 0 and lib then
    local limits = { retentionMs = a[14] + 0, streamMessages = a[10] + 0, streamsPerUser = a[15] + 0 }
    local span, ms = lib.history_prepare(a[from + 6], limits, now, ofCommands)
    if span then
      -- After a change of the retention, the span may begin at another time than the relay expects. The places of a
      -- stream that was removed to make room are gone.
      keyOf[cs], seen[cs], expiries[cs] = span, {}, ms
      for _, i in ipairs(kept) do seen[cs][a[ids + i]] = call('HGET', span, a[ids + i]) end
    end
    seen[hs][field] = call('HGET', keyOf[hs], field)
    for _, g in ipairs(shares) do
      if g.letter == 'h' then
        m[g.letter], m[g.ownField] = call('HGET', keyOf.m, g.letter), call('HGET', keyOf.m, g.ownField)
      end
    end
  end
  if #block > 0 then
    local seq, at, turn, renewed, evicted, upcoming, bytes = match(seen[hs][field], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    at = math.max(at + 0, now)
    local atText, count, joined = whole(at), #block, concat(block)
    seq = seq + 0
    call('XADD', stream, atText .. '-' .. whole(seq + 1), count, joined)
    local list = places[cs] or { 'HSET', keyOf[cs] }
    places[cs] = list
    local cmd = seen[cs]
    for i, row in ipairs(kept) do
      local id = a[ids + row]
      local known = cmd[id] or ''
      -- A place has three parts, each followed by a NUL, and at least 18 characters.
      if #known >= 16 * 18 and select(2, string.gsub(known, '%z', '')) >= 16 * 3 then
        morePlaces(keyOf[hs], id, fmt('%016.0f', at) .. '\0' .. suffix .. '\0' .. fmt('%016.0f', seq + i))
      elseif id ~= '' then
        cmd[id] = known .. atText .. '\0' .. suffix .. '\0' .. whole(seq + i) .. '\0'
        list[#list + 1] = id
        list[#list + 1] = cmd[id]
      end
      local mark = marked and a[marks + row] or ''
      if mark ~= '' then
        local name, value, ms = match(mark, '^(%Z*)%z(%Z*)%z(%d+)$')
        local place = atText .. '-' .. whole(seq + i)
        call('SET', name, value .. place, 'PX', ms)
        placed[#placed + 1] = byte(acts, row)
        placed[#placed + 1] = place
      end
    end
    -- The acts tell which stream was written last. Rows of acts that did not pass do not count.
    turn = (seen[hs].t or 0) + byte(acts, kept[count])
    turns[hs] = math.max(turns[hs] or 0, turn)
    if renewal > 0 then
      renewed = atText
      call('PEXPIRE', a[from], a[from + 1])
      call('PEXPIRE', a[from + 2], a[from + 3])
      call('ZADD', a[from + 4], a[from + 5], a[from + 6])
      if renewal > 7 then call('ZADD', a[from + 7], turn, a[from + 8]) end
    end
    local head = heads[hs] or { 'HSET', keyOf[hs] }
    heads[hs] = head
    head[#head + 1] = field
    head[#head + 1] = concat({ whole(seq + count), atText, whole(turn), renewed, evicted, upcoming, whole(bytes + #joined) }, ' ')
    if seq + count - a[10] + 1 >= upcoming + a[11] then notes[#notes + 1] = field end
  end
end
for hs, head in pairs(heads) do
  head[#head + 1] = 't'
  head[#head + 1] = whole(turns[hs])
  call(unpack(head))
end
for _, list in pairs(places) do
  if #list > 2 then call(unpack(list)) end
end
for cs, ms in pairs(expiries) do call('PEXPIRE', keyOf[cs], ms) end

-- The meta key: the amounts of shares, and the number of this call.
local hset, sums = { 'HSET', keyOf.m }, {}
if a[2] ~= '' and a[4] + 0 > last + 0 then hset[3], hset[4] = 'calls:' .. a[2], a[3] .. ' ' .. a[4] end
for _, g in ipairs(shares) do
  local by = ok and g.own - g.before or g.sum
  for _, field in ipairs({ g.letter, g.ownField, g.span }) do
    if by ~= 0 and field ~= '' then sums[field] = (sums[field] or (m[field] or 0) + 0) + by end
  end
  if g.over ~= '' and by > 0 and g.before + by > g.guarantee then call('ZADD', g.over, whole(g.before + by), g.member) end
end
-- A share that counts objects may exceed its total a little, so that many objects are removed at once.
local noted = {}
for _, g in ipairs(shares) do
  local slack = g.letter == 'h' and 0 or math.min(256, floor(g.total / 32))
  if g.over ~= '' and g.total >= 0 and (sums[g.letter] or 0) > g.total + slack and not noted[g.letter] then
    noted[g.letter] = true
    notes[#notes + 1] = g.letter
  end
end
for field, sum in pairs(sums) do
  if sum > 0 then
    hset[#hset + 1] = field
    hset[#hset + 1] = whole(sum)
  elseif m[field] then call('HDEL', keyOf.m, field) end
end
if #hset > 2 then call(unpack(hset)) end
local answer = { (meta[2] or 0) + 0 > real and 'WATCHED' or 'OK', notes, placed, counts }
for act, reason in pairs(bad or {}) do answer[#answer + 1] = { act, reason[1], reason[2] } end
return answer

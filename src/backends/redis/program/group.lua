-- Acts of one call that write to the same index do so together, once, when the last of them is done: nobody sees a state between, since
-- the call is one atomic step. Only acts that stand in `grouped` leave their writes to the end; all others find everything written.
local grouped = {}
local grouping = false
-- What was read in this call and only ungrouped acts, or who keeps it, can change.
local facts = {}
-- Run at the end, once each.
local ends = {}
-- By name of the index: by member what becomes of it last, a score (true in a SET) or false.
local pending, binned = {}, {}
local expiries = {}
local sizes, lasts = {}, {}

-- So many texts go with one command at most.
local function inParts(command, name, texts)
  for i = 1, #texts, 1000 do
    call(command, name, unpack(texts, i, math.min(#texts, i + 999)))
  end
end

local function write(name)
  local rows = pending[name]
  pending[name] = nil
  if not rows then return end
  local added, gone = {}, {}
  for member, score in pairs(rows.of) do
    if not score then gone[#gone + 1] = member
    else
      if score ~= true then added[#added + 1] = score end
      added[#added + 1] = member
    end
  end
  inParts(rows.set and 'SADD' or 'ZADD', name, added)
  inParts(rows.set and 'SREM' or 'ZREM', name, gone)
end

-- Fields of hashes that acts of this call have read or changed, by name of the key. A text; false: absent; or a function that answers the
-- text at the end of the call.
local hashes = {}

local function hashOf(name)
  local held = hashes[name]
  if not held then
    held = { seen = {}, changed = {}, count = 0 }
    hashes[name] = held
  end
  return held
end

local function writeHash(name, held)
  local added, gone = {}, {}
  for field in pairs(held.changed) do
    local value = held.seen[field]
    if type(value) == 'function' then value = value() end
    if value then
      added[#added + 1] = field
      added[#added + 1] = value
    else gone[#gone + 1] = field end
  end
  inParts('HSET', name, added)
  inParts('HDEL', name, gone)
end

-- Everything is written now, and what was read is not believed any more.
local function flush()
  local last = ends
  ends = {}
  for _, run in ipairs(last) do run() end
  for name, held in pairs(hashes) do
    if held.count > 0 then writeHash(name, held) end
  end
  hashes = {}
  for name in pairs(pending) do write(name) end
  if #binned > 0 then call('UNLINK', unpack(binned)) end
  for name, ms in pairs(expiries) do call('PEXPIRE', name, text(ms)) end
  binned, expiries, facts, sizes, lasts = {}, {}, {}, {}, {}
end

local function note(name, member, score, set)
  local rows = pending[name]
  if not rows then
    rows = { of = {}, set = set }
    pending[name] = rows
  end
  rows.of[member] = score
end

-- ZADD, ZREM, SADD and SREM of one member, and UNLINK of what no act of the call reads again: at once, or with the others of the call.
local function put(name, score, member)
  if not grouping then return call('ZADD', name, score, member) end
  if sizes[name] then sizes[name] = sizes[name] + 1 end
  if lasts[name] then lasts[name] = math.max(lasts[name], tonumber(score)) end
  note(name, member, score, false)
end
local function drop(name, member)
  if not grouping then return call('ZREM', name, member) end
  sizes[name] = nil
  note(name, member, false, false)
end
local function join(name, member)
  if not grouping then return call('SADD', name, member) end
  note(name, member, true, true)
end
local function quit(name, member)
  if not grouping then return call('SREM', name, member) end
  note(name, member, false, true)
end
local function unlink(name)
  if not grouping then return call('UNLINK', name) end
  binned[#binned + 1] = name
end

-- Reads fields of a HASH that are not known yet, with one command for them all.
local function prefetch(name, fields)
  local seen, missing = hashOf(name).seen, {}
  for _, field in ipairs(fields) do
    if seen[field] == nil then
      missing[#missing + 1] = field
      seen[field] = false
    end
  end
  for first = 1, #missing, 1000 do
    local last = math.min(#missing, first + 999)
    local got = call('HMGET', name, unpack(missing, first, last))
    for i = first, last do seen[missing[i]] = got[i - first + 1] end
  end
end

-- What acts of this call will read: by name of an act, a function that says so by `want`. So a call reads each HASH by one command.
local reads = {}
local wanted = {}

local function want(name, ...)
  local fields = wanted[name]
  if not fields then
    fields = {}
    wanted[name] = fields
  end
  for _, field in ipairs({ ... }) do fields[#fields + 1] = field end
end

local function fetchWanted()
  for name, fields in pairs(wanted) do prefetch(name, fields) end
  wanted = {}
end

-- The values of fields of a HASH, as a list; false where there is none.
local function get(name, ...)
  if not grouping then return call('HMGET', name, ...) end
  local fields, values = { ... }, {}
  prefetch(name, fields)
  local seen = hashes[name].seen
  for i = 1, #fields do
    local value = seen[fields[i]]
    if type(value) == 'function' then value = value() end
    values[i] = value
  end
  return values
end

-- Sets a field of a HASH, or removes it where `value` is false: at once, or with the others of the call. `value` may be a function: it is
-- asked for the text when the field is written.
local function set(name, field, value)
  if grouping then
    local held = hashOf(name)
    held.seen[field], held.changed[field], held.count = value, true, held.count + 1
    return
  end
  if type(value) == 'function' then value = value() end
  if value then call('HSET', name, field, value) else call('HDEL', name, field) end
end

-- Gives a key an expiry, ms, once all that was done so far is written.
local function expire(name, ms)
  expiries[name] = ms
end

-- How many members a ZSET has; each `put` since counts as a new one.
local function size(name)
  if sizes[name] then return sizes[name] end
  write(name)
  local count = call('ZCARD', name)
  if grouping then sizes[name] = count end
  return count
end

-- The highest score of a ZSET, or more: what was dropped in this call may still count.
local function highest(name)
  if lasts[name] then return lasts[name] end
  write(name)
  local last = tonumber(call('ZREVRANGE', name, 0, 0, 'WITHSCORES')[2] or 0)
  if grouping then lasts[name] = last end
  return last
end

-- What `read` answers (never nil), read once in a call of grouped acts.
local function fact(name, read)
  if not grouping then return read() end
  local value = facts[name]
  if value == nil then
    value = read()
    facts[name] = value
  end
  return value
end

-- Runs at the end of the call, or now. Everything that is put off so is written by `flush`.
local function atEnd(run)
  if grouping then ends[#ends + 1] = run else run() end
end

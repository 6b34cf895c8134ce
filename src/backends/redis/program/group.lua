-- The functions by which acts read and write. Grouped acts leave their writes to the end of the call, where each key is
-- written by one command. Nothing can see a state in between, because a call is one atomic step. Before an act that is
-- not in `grouped`, the writes of the earlier acts are done.
local grouped = {}
local grouping = false
-- Values that were read in this call. While acts are grouped, only the code that reads a value may change it in Redis.
local facts = {}
-- Functions that run at the end of the call.
local ends = {}
-- The scores to write, as pending[ZSET][member]: the new score, or false if the member was removed.
local pending = {}
-- The expiries to set (ms), by name of the key.
local expiries = {}

-- Sends a command with texts, at most 1000 at a time.
local function inParts(command, name, texts)
  for i = 1, #texts, 1000 do
    call(command, name, unpack(texts, i, math.min(#texts, i + 999)))
  end
end

-- Writes the pending members of a ZSET.
local function write(name)
  local members = pending[name]
  pending[name] = nil
  if not members then return end
  local added, gone = {}, {}
  for member, score in pairs(members) do
    if score then
      added[#added + 1] = score
      added[#added + 1] = member
    else gone[#gone + 1] = member end
  end
  inParts('ZADD', name, added)
  inParts('ZREM', name, gone)
end

-- The HASHes that acts of this call have read or changed, by name of the key. The value of a field is a text; false if
-- it is absent; or a function that returns the text at the end of the call.
local hashes = {}

local function hashOf(name)
  local held = hashes[name]
  if not held then
    held = { seen = {}, changed = {} }
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

-- Does all writes that were left to the end, and forgets every value that was read.
local function flush()
  local last = ends
  ends = {}
  for _, run in ipairs(last) do run() end
  for name, held in pairs(hashes) do
    if next(held.changed) ~= nil then writeHash(name, held) end
  end
  hashes = {}
  for name in pairs(pending) do write(name) end
  for name, ms in pairs(expiries) do call('PEXPIRE', name, text(ms)) end
  expiries, facts = {}, {}
end

local function note(name, member, score)
  local members = pending[name]
  if not members then
    members = {}
    pending[name] = members
  end
  members[member] = score
end

-- Sets the score of one member of a ZSET, or removes the member: at once, or with the other writes of the call.
local function put(name, score, member)
  if not grouping then return call('ZADD', name, score, member) end
  note(name, member, score)
end
local function drop(name, member)
  if not grouping then return call('ZREM', name, member) end
  note(name, member, false)
end

-- Reads fields of a HASH into `seen`, with one command for each 1000 of them.
local function fetch(name, fields, seen)
  for first = 1, #fields, 1000 do
    local last = math.min(#fields, first + 999)
    local got = call('HMGET', name, unpack(fields, first, last))
    for i = first, last do seen[fields[i]] = got[i - first + 1] end
  end
end

-- The fields to read: by name of a HASH, a list.
local wanted = {}

local function wantField(fields, seen, field)
  if seen[field] ~= nil then return end
  fields[#fields + 1] = field
  -- Set, so that no other act adds the field too. The field is read before any act uses it.
  seen[field] = false
end

-- Declares one to four fields of a HASH that an act will read.
local function want(name, first, second, third, fourth)
  local seen, fields = (hashes[name] or hashOf(name)).seen, wanted[name]
  if not fields then
    fields = {}
    wanted[name] = fields
  end
  wantField(fields, seen, first)
  if second then wantField(fields, seen, second) end
  if third then wantField(fields, seen, third) end
  if fourth then wantField(fields, seen, fourth) end
end

local function fetchWanted()
  for name, fields in pairs(wanted) do fetch(name, fields, hashOf(name).seen) end
  wanted = {}
end

-- Returns the value of a field of a HASH; false if it is absent.
local function get(name, field)
  if not grouping then return call('HGET', name, field) end
  local seen = (hashes[name] or hashOf(name)).seen
  local value = seen[field]
  if value == nil then
    value = call('HGET', name, field)
    seen[field] = value
  end
  -- A function was given to `set`, and returns the text as it is now.
  if value and type(value) == 'function' then return value() end
  return value
end

-- Sets a field of a HASH at the end of the call, or before the first act that is not grouped.
local function setLater(name, field, value)
  local held = hashes[name] or hashOf(name)
  held.seen[field], held.changed[field] = value, true
end

-- Sets a field of a HASH, or removes it if `value` is false: at once, or with the other writes of the call. `value` may
-- be a function that returns the text when the field is written.
local function set(name, field, value)
  if grouping then return setLater(name, field, value) end
  if type(value) == 'function' then value = value() end
  if value then call('HSET', name, field, value) else call('HDEL', name, field) end
end

-- Gives a key an expiry, ms, after the writes of this call.
local function expire(name, ms)
  expiries[name] = ms
end

-- Returns what `read(name, more)` returns, which is never nil. In a call of grouped acts, `read` runs only once for
-- each kind and name.
local function fact(kind, name, read, more)
  if not grouping then return read(name, more) end
  local value = facts[kind] and facts[kind][name]
  if value == nil then
    value = read(name, more)
    -- Looked up again, because `read` may have called `flush`.
    local known = facts[kind] or {}
    facts[kind] = known
    known[name] = value
  end
  return value
end

-- Runs a function at the end of a call of grouped acts, or else now.
local function atEnd(run)
  if grouping then ends[#ends + 1] = run else run() end
end

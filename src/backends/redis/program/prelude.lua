-- The start of every program. A program runs a list of acts, in order, as one atomic step of the partition whose meta key is KEYS[1].
-- ARGV: 1 time (ms) instead of the server's, or ''; 2 node, or '' for none; 3 its epoch; 4 number of this call, growing; 5 highest
--       number whose answer the node had; then, for each act: its name, how many arguments, the arguments.
-- Answer: {'OK', reply...}, each reply {1, value} or {0, message}; 'WATCHED' in place of 'OK' if some node listens to hints of commands;
--       or {'FENCED'}: the node's epoch is over; or {'LOST'}: the store forgot what it had confirmed. Nothing was done then.
local T = string.sub(KEYS[1], 1, -6)
local call = redis.call
local acts = {}
local lib = {}

-- The name of a key, as keys.ts has it. Lua hashes every byte of each text that it makes, so a name is made once.
local names = {}
local function key(kind, hash)
  local known = names[kind]
  if not known then
    known = { plain = T .. ':' .. kind, of = {} }
    names[kind] = known
  end
  if not hash then return known.plain end
  local name = known.of[hash]
  if not name then
    name = known.plain .. ':' .. hash
    known.of[hash] = name
  end
  return name
end

-- What every call reads of its partition: the time that the clock never goes back behind, until when a node listens to hints of commands,
-- and the calling node's epoch with the number of its last call.
local head = call('HMGET', KEYS[1], 'floor', 'watched', 'calls:' .. ARGV[2])

-- Milliseconds of the one clock of the partition: it never goes back behind what a beat has noted.
local function readNow()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  return math.max(ms, tonumber(head[1] or 0))
end
local now = readNow()

-- A whole number as text, without an exponent. The acts of a call name the same few over and over.
local texts = {}
local function text(number)
  local known = texts[number]
  if known then return known end
  known = string.format('%d', number)
  texts[number] = known
  return known
end

-- A reply of HGETALL as a table; nil where there was nothing.
local function hash(name)
  local flat = call('HGETALL', name)
  if #flat == 0 then return nil end
  local row = {}
  for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
  return row
end

-- A table of texts as HGETALL answers it.
local function flat(row)
  local list = {}
  for field, value in pairs(row) do
    list[#list + 1] = field
    list[#list + 1] = value
  end
  return list
end

-- An argument that may be absent.
local function given(argument)
  if argument == '' then return nil end
  return argument
end

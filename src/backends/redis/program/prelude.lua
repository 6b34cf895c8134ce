-- The start of every program. A program runs a list of acts, in order, as one atomic step of the partition whose meta
-- key is KEYS[1].
-- ARGV: 1 time (ms) instead of the server's, or ''; 2 node, or '' for none; 3 its epoch; 4 number of this call, higher
--       than any before; 5 highest number of a call that the node got an answer to; then, for each act: its name, the
--       number of arguments, the arguments.
-- Answer: {'OK', reply...}, each reply {1, value} or {0, error message}; {'WATCHED', reply...} if some node listens to
--       hints of commands. Or, without having done anything, {'FENCED'}: the node's epoch is no longer valid, or
--       {'LOST'}: the store lost a write that it had confirmed.
local T = string.sub(KEYS[1], 1, -6)
local call = redis.call
local acts = {}
local lib = {}

-- Returns the name of a key, as in keys.ts: the kind, then up to two more parts.
local function key(kind, part, more)
  return T .. ':' .. kind .. (part and ':' .. part or '') .. (more and ':' .. more or '')
end

-- The values of the partition that every call reads: the earliest time that the clock may show, the time until which a
-- node listens to hints of commands, and the epoch of the calling node with the number of its last call.
local head = call('HMGET', KEYS[1], 'floor', 'watched', 'calls:' .. ARGV[2])

-- Returns the time of the partition, in ms. It is never earlier than the time that a heartbeat has stored.
local function readNow()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  return math.max(ms, tonumber(head[1] or 0))
end
local now = readNow()

-- Returns a whole number as text, without an exponent.
local function text(number) return string.format('%d', number) end

-- Reads a HASH as a table; nil if there is none.
local function hash(name)
  local flat = call('HGETALL', name)
  if #flat == 0 then return nil end
  local row = {}
  for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
  return row
end

-- Appends values to a list.
local function append(list, ...)
  for i = 1, select('#', ...) do list[#list + 1] = (select(i, ...)) end
end

-- Returns a table of texts as a flat list in which names and values alternate.
local function flat(row)
  local list = {}
  for field, value in pairs(row) do
    list[#list + 1] = field
    list[#list + 1] = value
  end
  return list
end

-- Returns an argument of an act; nil if it is absent.
local function given(argument)
  if argument == '' then return nil end
  return argument
end

-- Appends a value to the list that `lists` contains under a name.
local function group(lists, name, value)
  lists[name] = lists[name] or {}
  table.insert(lists[name], value)
end

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

-- Everything is written now, and what was read is not believed any more.
local function flush()
  local last = ends
  ends = {}
  for _, run in ipairs(last) do run() end
  for name in pairs(pending) do write(name) end
  if #binned > 0 then call('UNLINK', unpack(binned)) end
  binned, facts, sizes, lasts = {}, {}, {}, {}
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

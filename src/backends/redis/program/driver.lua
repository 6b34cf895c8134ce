-- The end of every program: checks the calling node, then runs the acts of the call one after another.
local function fence()
  if ARGV[2] == '' then return nil end
  local name = key('node', ARGV[2])
  local row = call('HMGET', name, 'epoch', 'seq')
  if not row[1] then return 'LOST' end
  if row[1] ~= ARGV[3] then
    if tonumber(row[1]) < tonumber(ARGV[3]) then return 'LOST' end
    return 'FENCED'
  end
  local last = tonumber(row[2] or 0)
  if last < tonumber(ARGV[5]) then return 'LOST' end
  if tonumber(ARGV[4]) > last then call('HSET', name, 'seq', ARGV[4]) end
  return nil
end

local verdict = fence()
if verdict then return { verdict } end
local asked, together, at = {}, true, 6
while at <= #ARGV do
  local name, count = ARGV[at], tonumber(ARGV[at + 1])
  local arguments
  -- `unpack` fails for more arguments than fit on Lua's stack.
  if count <= 1000 then arguments = { unpack(ARGV, at + 2, at + 1 + count) }
  else
    arguments = {}
    for i = 1, count do arguments[i] = ARGV[at + 1 + i] end
  end
  asked[#asked + 1] = { name = name, arguments = arguments }
  if not grouped[name] then together = false end
  at = at + 2 + count
end

if together then
  grouping = true
  for _, act in ipairs(asked) do
    if reads[act.name] then reads[act.name](act.arguments) end
  end
  fetchWanted()
end

local replies = { 'OK' }
for i, act in ipairs(asked) do
  if grouping and not grouped[act.name] then flush() end
  grouping = grouped[act.name] or false
  local ok, reply = pcall(acts[act.name], act.arguments)
  if ok then
    if reply == nil then reply = false end
    replies[i + 1] = { 1, reply }
  else
    if type(reply) == 'table' then reply = reply.err end
    replies[i + 1] = { 0, tostring(reply) }
  end
end
flush()
return replies

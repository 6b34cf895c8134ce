-- The end of every program: checks the calling node, then runs the acts of the call one after another.

-- Returns the reason to refuse the call, or nil. The meta key contains the epoch of each attached node and the number
-- of its last call. The HASH of a node keeps the epoch for longer.
local function fence()
  local node, called, number, confirmed = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
  if node == '' then return nil end
  local epoch, last = string.match(head[3] or '', '^(%d+) (%d+)$')
  if epoch ~= called then
    local known = call('HGET', key('node', node), 'epoch')
    if known and tonumber(known) > tonumber(called) then return 'FENCED' end
    return 'LOST'
  end
  if tonumber(last) < confirmed then return 'LOST' end
  if number > tonumber(last) then call('HSET', KEYS[1], 'calls:' .. node, epoch .. ' ' .. ARGV[4]) end
  return nil
end

local verdict = fence()
if verdict then return { verdict } end
local replies, at = { 'OK' }, 6
while at <= #ARGV do
  local count, arguments = tonumber(ARGV[at + 1]), nil
  -- `unpack` fails if its results do not fit on the stack of Lua, so longer lists are copied.
  if count <= 1000 then arguments = { unpack(ARGV, at + 2, at + 1 + count) }
  else
    arguments = {}
    for i = 1, count do arguments[i] = ARGV[at + 1 + i] end
  end
  local ok, reply = pcall(acts[ARGV[at]], arguments)
  if not ok and type(reply) == 'table' then reply = reply.err end
  replies[#replies + 1] = ok and { 1, reply or false } or { 0, tostring(reply) }
  at = at + 2 + count
end
if tonumber(head[2] or 0) > now then replies[1] = 'WATCHED' end
return replies

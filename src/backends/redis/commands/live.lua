-- Lists the commands of a client that have not ended. a: 1 the client's hash. Returns their ids.
-- class: allow_oom
acts['commands-live'] = function(a)
  local ids = {}
  for _, field in ipairs(call('HKEYS', key('client', a[1]))) do
    if string.byte(field) == 115 then ids[#ids + 1] = string.sub(field, 2) end
  end
  return ids
end

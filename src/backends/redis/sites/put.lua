-- Creates a site or replaces its definition.
-- a: 1 site hash; 2 its member: user NUL site; 3, 4 bounds of the members of its user; 5 the most sites of a user; 6
--    definition (JSON)
-- Returns when it was first registered, or 'full'.
-- class: grow
acts['sites-put'] = function(a)
  local name = key('site', a[1])
  local since = call('HGET', name, 'registeredAt')
  if not since then
    if call('ZLEXCOUNT', key('sites'), a[3], a[4]) >= tonumber(a[5]) then return 'full' end
    since = text(now)
  end
  call('HSET', name, 'definition', a[6], 'registeredAt', since)
  call('ZADD', key('sites'), 0, a[2])
  return since
end

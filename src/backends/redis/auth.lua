-- Sign-in tickets that were used.

-- act: take-ticket
-- Marks a sign-in ticket as used. a: 1 ticket hash; 2 how long to remember that, ms. Returns 1 the first time, 0
-- afterwards.
-- class: grow
acts['auth-take-ticket'] = function(a)
  local name = key('signin', a[1])
  if call('EXISTS', name) == 1 then return 0 end
  call('SET', name, '1', 'PX', a[2])
  return 1
end

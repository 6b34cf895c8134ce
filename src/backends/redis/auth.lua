-- Sign-in tickets that were used.

-- act: take-ticket
-- Marks a sign-in ticket as used. a: 1 ticket hash; 2 how long to remember that, ms. Returns 1 the first time, 0
-- afterwards.
-- class: grow
acts['auth-take-ticket'] = function(a)
  return call('SET', key('signin', a[1]), '1', 'PX', a[2], 'NX') and 1 or 0
end

-- Acts of the tests of the store.

-- act: fail
-- class: grow
acts['test-fail'] = function()
  return call('INCR', key('node', 'x'), 'too', 'many')
end

-- act: note
-- class: grow
acts['test-note'] = function(a)
  return call('RPUSH', key('bus'), a[1])
end

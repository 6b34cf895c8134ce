-- class: grow
acts['test-fail'] = function()
  return call('INCR', key('node', 'x'), 'too', 'many')
end

-- class: grow
acts['test-note'] = function(a)
  return call('RPUSH', key('bus'), a[1])
end

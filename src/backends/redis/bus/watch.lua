-- Notes that a node listens to hints of the partition's commands. Hints are published for as long as such a note lasts.
-- a: 1 how long the note lasts, ms.
-- Returns nothing.
-- class: grow
-- grouped: yes
acts['bus-watch'] = function(a)
  local upTo = now + tonumber(a[1])
  if upTo <= tonumber(head[2] or 0) then return false end
  head[2] = text(upTo)
  call('HSET', KEYS[1], 'watched', head[2])
  return false
end

-- Marks a link as down, only under this epoch. A link that is already down stays as it is.
-- a: 1 client hash, 2 epoch, 3 cause, 4 code of the client's close frame or ''
-- Returns the row as a flat list; null if there is none, it has another epoch, or the reaper of its node has marked it.
-- class: allow_oom
-- needs: lib-connections-ends
acts['connections-disconnect'] = function(a)
  lib.connections_lose(a[1], a[2], a[3], given(a[4]))
  local row = lib.connections_load(a[1])
  if not row or row.epoch ~= a[2] or row.reaped then return false end
  return flat(row)
end

-- Removes blocks of a stream whose rows are all beyond its limits, as an append does. a: names and values of a row of the
-- stream (see lib-history). Returns nothing.
-- class: allow_oom
-- needs: lib-history, lib-history-blocks, lib-history-bytes
acts['history-trim'] = function(a)
  local row = lib.history_row(a, 1)
  local info = lib.history_head(row.uh, row.sth)
  if not info then return end
  local before = info.bytes
  local bound = lib.history_bound(row, info)
  if row.aged then
    local count, least = bound.beyond, now - row.retentionMs
    bound = { any = true, beyond = function(at, upcoming) return at <= least or count(at, upcoming) end }
  end
  local oldest = lib.history_trim(row, info, bound)
  if oldest then call('XTRIM', key('stream', row.sth), 'MINID', oldest) end
  lib.history_count(row, info.bytes - before)
  lib.history_note(row, info)
end

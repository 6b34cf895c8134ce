-- Appends a message. a: 1 hash of the mark that recognizes a repeated call; 2... names and values of the row (see
-- lib-history).
-- Returns {seq, at}.
-- class: grow
-- needs: lib-dedup, lib-history, lib-history-reads
-- grouped: yes
acts['history-retain'] = function(a)
  local mark = lib.dedup_mark(a[1])
  if mark and mark.place ~= '-' then return lib.history_placed(mark.place) end
  local seq, at = lib.history_retain(lib.history_row(a, 2))
  local place = text(at) .. '-' .. text(seq)
  lib.dedup_write(a[1], { ends = now + lib.dedup_ttl, token = '-', last = '-', place = place })
  return { text(seq), text(at) }
end

-- Appends a message unless it was ingested before. a: 1 hash of its mark; 2 token of this call, the same if it is
-- repeated; 3... names and values of the row (see lib-history). Returns {'retained', seq, at} or {'duplicate'}.
-- class: grow
-- needs: lib-dedup, lib-history, lib-history-reads
-- grouped: yes
acts['history-ingest'] = function(a)
  local first, mark = lib.dedup_see(a[1], a[2])
  if not first then return { 'duplicate' } end
  if mark and mark.place ~= '-' then return { 'retained', unpack(lib.history_placed(mark.place)) } end
  local seq, at = lib.history_retain(lib.history_row(a, 3))
  lib.dedup_place(a[1], text(at) .. '-' .. text(seq))
  return { 'retained', text(seq), text(at) }
end

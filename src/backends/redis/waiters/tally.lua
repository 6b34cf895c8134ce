-- Counts the waits in a part of an index that match a filter, by the node of the target's connection. Changes nothing.
-- a: kind of the index; its hash, or ''; the place to continue after, or ''; how many to read; then the filter, each ''
--    for any: least age, ms; client; node of the target; node of the caller.
-- Returns how many were read; the last place, or false at the end; then in turn a node ('' for none) and its count.
-- class: allow_oom
-- needs: lib-waiters
acts['waiters-tally'] = function(a)
  local limit = tonumber(a[4])
  local client, node, caller = given(a[6]), given(a[7]), given(a[8])
  local places = lib.waiters_stretch(key(a[1], given(a[2])), given(a[3]), limit, tonumber(given(a[5])))
  local counts = {}
  for _, place in ipairs(places) do
    local at = lib.waiters_match(place, client, node, caller)
    if at ~= nil then counts[at or ''] = (counts[at or ''] or 0) + 1 end
  end
  local reply = { #places, #places == limit and places[#places] or false }
  for at, count in pairs(counts) do
    reply[#reply + 1] = at
    reply[#reply + 1] = count
  end
  return reply
end

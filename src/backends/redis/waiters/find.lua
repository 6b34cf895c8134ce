-- Searches a part of an index of waits for those that match a filter, oldest first. Changes nothing.
-- a: kind of the index; its hash, or ''; the place to continue after, or ''; the most places to find; the most places
--    to read; then the filter, each '' for any: least age, ms; client; node of the target; node of the caller.
-- Returns the last place that was read, or false at the end; then the places found.
-- class: allow_oom
-- needs: lib-waiters
acts['waiters-find'] = function(a)
  local first, budget = tonumber(a[4]), tonumber(a[5])
  local client, node, caller = given(a[7]), given(a[8]), given(a[9])
  local any = not (client or node or caller)
  local limit = any and math.min(first, budget) or budget
  local places = lib.waiters_stretch(key(a[1], given(a[2])), given(a[3]), limit, tonumber(given(a[6])))
  local found = { false }
  for i, place in ipairs(places) do
    if any or lib.waiters_match(place, client, node, caller) ~= nil then found[#found + 1] = place end
    if #found > first or (i == #places and i == limit) then
      found[1] = place
      break
    end
  end
  return found
end

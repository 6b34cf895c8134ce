-- Lists names of commands of this partition, latest admission first.
-- a: 1 the most names; the name to continue after: 2 its time (ms) and 3 the name, '' for none; 4 the greatest age of a
--    name (ms); 5 only commands admitted after this time, 6 and before this one, '' for any.
-- Returns each name (user hash, client hash, id) followed by its time. Commands that are gone may be among them.
-- class: allow_oom
-- needs: lib-newest
-- rows: all

-- Says whether the bytes of a text come before those of another. Lua's own comparison depends on the server's locale.
lib.newest_before = function(a, b)
  for i = 1, math.min(#a, #b) do
    local left, right = string.byte(a, i), string.byte(b, i)
    if left ~= right then return left < right end
  end
  return #a < #b
end

acts['inspector-newest'] = function(a)
  local most, time, member = tonumber(a[1]), given(a[2]), a[3]
  local oldest = math.max(now - tonumber(a[4]), tonumber(given(a[5]) or 0) + 1)
  local top = tonumber(time or now)
  if given(a[6]) then top = math.min(top, tonumber(a[6]) - 1) end
  local found, hour = {}, top - top % lib.newest_hour
  while hour + lib.newest_hour > oldest and #found < 2 * most do
    local name = lib.newest_key(hour)
    local first = call('ZCOUNT', name, '(' .. text(top), '+inf')
    -- The names with the same millisecond as the given name are read too, and those that the page before had are
    -- skipped.
    local again = time and call('ZCOUNT', name, time, time) or 0
    local rows = call('ZREVRANGE', name, first, first + again + most - #found / 2 - 1, 'WITHSCORES')
    for i = 1, #rows, 2 do
      local passed = rows[i + 1] == time and not lib.newest_before(rows[i], member)
      if not passed and tonumber(rows[i + 1]) >= oldest and #found < 2 * most then
        found[#found + 1] = rows[i]
        found[#found + 1] = rows[i + 1]
      end
    end
    hour = hour - lib.newest_hour
  end
  return found
end

-- Names of commands with a record, live or ended: at least the first so many that there are after a name, and maybe some that come later.
-- Names of commands that are gone may be among them.
-- a: 1 user, or '' for all; 2 its hash; 3 client of that user, or ''; the name after which: 4 user, 5 client, 6 command, all '' for none;
--    7 how many.
-- Returns the names (user NUL client NUL command), each once, in no particular order.
-- class: allow_oom
-- needs: lib-ended, lib-spans

-- The first `most` names of a user after a place of its own go into `found`.
lib.inspector_names_of = function(userId, uh, bounds, found)
  for _, span in ipairs(lib.spans_of(uh).named) do
    for _, member in ipairs(call('ZRANGEBYLEX', lib.spans_key(uh, span), bounds.from, bounds.to, 'LIMIT', 0, bounds.most)) do
      local whole = userId .. '\0' .. member
      if not found.known[whole] then
        found.known[whole] = true
        found.list[#found.list + 1] = whole
      end
    end
  end
end

-- Where one user's names begin after a place, and end.
lib.inspector_bounds = function(client, after, most)
  local from, to = '-', '+'
  if client then from, to = '[' .. client .. '\0', '(' .. client .. '\1' end
  if after then from = '(' .. after end
  return { from = from, to = to, most = most }
end

acts['inspector-names'] = function(a)
  lib.ended_sweep(32)
  local most, found = tonumber(a[7]), { known = {}, list = {} }
  local after = a[4] ~= '' and a[5] .. '\0' .. a[6] or nil
  if a[1] ~= '' then
    lib.inspector_names_of(a[1], a[2], lib.inspector_bounds(given(a[3]), after, most), found)
    return found.list
  end
  local from = after and '[' .. a[4] .. '\0' or '-'
  while #found.list < most do
    local users = call('ZRANGEBYLEX', key('cmdusers'), from, '+', 'LIMIT', 0, 64)
    for _, member in ipairs(users) do
      local userId, uh = string.match(member, '^(%Z*)%z(.*)$')
      local own = userId == a[4] and after or nil
      lib.inspector_names_of(userId, uh, lib.inspector_bounds(nil, own, most), found)
      if #found.list >= most then break end
    end
    if #users < 64 then break end
    from = '(' .. users[#users]
  end
  return found.list
end

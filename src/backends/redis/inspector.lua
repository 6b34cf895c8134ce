-- The names and counts that the listings and the summary of commands need.

-- act: names
-- Lists names of live and ended commands: at least the next `a[7]` names after a given one, and perhaps some later
-- ones. Commands that are gone may be among them.
-- a: 1 user, or '' for all; 2 the user's hash; 3 client of that user, or ''; the name to continue after: 4 user, 5
--    client, 6 command, all '' for none; 7 how many.
-- Returns the names (user NUL client NUL command), each once, in no particular order.
-- class: allow_oom
-- needs: lib-spans
-- rows: all

-- Adds the first `most` names of a user within the bounds to `found`.
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

-- Returns the bounds of one user's names. `client`: only names of this client; `after`: only names after this one.
lib.inspector_bounds = function(client, after, most)
  local from, to = '-', '+'
  if client then from, to = '[' .. client .. '\0', '(' .. client .. '\1' end
  if after then from = '(' .. after end
  return { from = from, to = to, most = most }
end

acts['inspector-names'] = function(a)
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

-- act: summary
-- Counts the commands that the reservations of scopes do not show. The counts are added up here, because there is one
-- for each second of the idempotency window.
-- Returns {now, ended commands with a record, commands past their connect deadline but not past their deadline}.
-- class: allow_oom
acts['inspector-summary'] = function()
  local counts, second, ended, due = call('HGETALL', key('endedcount')), math.floor(now / 1000), 0, 0
  for i = 1, #counts, 2 do
    if tonumber(counts[i]) > second then ended = ended + tonumber(counts[i + 1]) end
  end
  -- A name begins with the deadline of its command.
  for _, name in ipairs(call('ZRANGEBYSCORE', key('connectdue'), '-inf', text(now))) do
    if tonumber(string.sub(name, 1, 13)) > now then due = due + 1 end
  end
  return { text(now), text(ended), text(due) }
end

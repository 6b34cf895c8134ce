-- How several commands are read at once, and how old ended ones are removed. All changes of commands are transactions
-- (see commands/transaction.ts).

-- act: read
-- Reads the records of commands, without parsing them.
-- a: 1 the stage that a record must have, '' for any; 2 how many texts it must contain; 3 the number of texts of which
--    it must contain one, 0 for any record; then the texts of 2 and those of 3; then for each command its client's
--    hash, its id and its user's hash.
-- Returns {now, then for each command its record; false if there is none, it has another stage, or lacks a text}.
-- class: allow_oom
-- needs: lib-spans
-- rows: 12

-- Captures when an ended command is forgotten: the 26th field of a record (see commands/record.ts).
lib.commands_forget_pattern = '^' .. string.rep('%Z*%z', 25) .. '(%d*)%z'

-- Reads the live commands of one client into `found`, by place. Adds the remaining places to `ended`, by user.
lib.commands_read_live = function(a, ch, places, found, ended)
  local fields = {}
  for _, place in ipairs(places) do append(fields, 's' .. a[place + 1], 'a' .. a[place + 1]) end
  local values = call('HMGET', key('client', ch), unpack(fields))
  for i, place in ipairs(places) do
    local state, request = values[2 * i - 1], values[2 * i]
    if state and request then found[place] = state .. request else group(ended, a[place + 2], place) end
  end
end

-- Reads the ended commands of one user into `found`, by place.
lib.commands_read_ended = function(a, uh, places, found)
  for _, span in ipairs(lib.spans_of(uh, '')) do
    local left, names = {}, {}
    for _, place in ipairs(places) do
      if not found[place] then
        left[#left + 1] = place
        names[#names + 1] = a[place] .. a[place + 1]
      end
    end
    if #left == 0 then return end
    for i, whole in ipairs(call('HMGET', lib.spans_key(uh, span), unpack(names))) do
      local forgetAt = whole and tonumber(string.match(whole, lib.commands_forget_pattern))
      if forgetAt and forgetAt > now then found[left[i]] = whole end
    end
  end
end

-- Captures the stage: the 5th field.
lib.commands_stage_pattern = '^' .. string.rep('%Z*%z', 4) .. '(%Z*)%z'

-- Whether a record has this stage, contains all of `texts`, and contains one of `one_of` unless that is empty. Plain
-- searches cost a tenth of a pattern that reaches the fields of the request.
lib.commands_may_match = function(whole, stage, texts, one_of)
  if stage and string.match(whole, lib.commands_stage_pattern) ~= stage then return false end
  for _, contained in ipairs(texts) do
    if not string.find(whole, contained, 1, true) then return false end
  end
  for _, contained in ipairs(one_of) do
    if string.find(whole, contained, 1, true) then return true end
  end
  return #one_of == 0
end

acts['commands-read'] = function(a)
  local found, clients, ended, texts, one_of = {}, {}, {}, {}, {}
  local alternatives = 4 + tonumber(a[2])
  local first = alternatives + tonumber(a[3])
  for i = 4, alternatives - 1 do texts[#texts + 1] = a[i] end
  for i = alternatives, first - 1 do one_of[#one_of + 1] = a[i] end
  for place = first, #a, 3 do group(clients, a[place], place) end
  for ch, places in pairs(clients) do lib.commands_read_live(a, ch, places, found, ended) end
  for uh, places in pairs(ended) do lib.commands_read_ended(a, uh, places, found) end
  local reply, stage = { text(now) }, given(a[1])
  for place = first, #a, 3 do
    local whole = found[place]
    reply[#reply + 1] = whole and lib.commands_may_match(whole, stage, texts, one_of) and whole or false
  end
  return reply
end

-- act: loads
-- Counts the live commands of clients. a: the hash of each client. Returns, for each, how many were dispatched and how
-- many were not. Stops once the call has read `loads_most` fields, so there may be fewer pairs than clients; call again
-- for the others.
-- class: allow_oom

-- The most fields that one call reads, exceeded by at most the fields of one client. A live command has four fields;
-- one of them, `s` (byte 115), contains its state.
lib.loads_most = 10000
lib.loads_left = lib.loads_most

acts['commands-loads'] = function(a)
  local found = {}
  for _, ch in ipairs(a) do
    if lib.loads_left <= 0 then break end
    local name, live = key('client', ch), 0
    local fields = call('HKEYS', name)
    lib.loads_left = lib.loads_left - #fields
    for _, field in ipairs(fields) do
      if string.byte(field) == 115 then live = live + 1 end
    end
    local waiting = tonumber(call('HGET', name, 'n') or 0)
    append(found, live - waiting, waiting)
  end
  return found
end

-- act: reduce
-- Reduces the oldest records of ended commands to marks until the total of records is within its limit. Called after an
-- end that exceeded the limit. a: 1 the guarantee of a user, 2 the total of this partition, 3 the idempotency window
-- (ms), then fields of a record, each a name and its place in the text.
-- Returns {1 if the caller must call again or else 0, how many records were reduced, how many of them had a result, how
-- many ids left no mark, then the users who lost such an id for the first time}.
-- class: allow_oom
-- rows: all
-- needs: lib-bounded, lib-reduce
acts['commands-reduce'] = function(a)
  local fields, done, users = {}, { records = 0, results = 0, forgotten = 0, notes = {} }, {}
  for i = 4, #a, 2 do fields[tonumber(a[i + 1])] = a[i] end
  local bounds = { guarantee = tonumber(a[1]), total = tonumber(a[2]), life = tonumber(a[3]) }
  local more = lib.bounded_keep(lib.bounded_of.e, bounds, function(uh, _, span, entries)
    lib.reduce_records(uh, span, entries, fields, done)
  end)
  local till = 0
  for uh, note in pairs(done.notes) do
    till = math.max(till, note.till)
    if lib.reduce_note(key('reduced', uh), note.till, note.id) then users[#users + 1] = note.userId end
    for names, of in pairs(note.marks) do
      for ended, count in pairs(of) do lib.reduce_move(uh, names, ended, count) end
    end
  end
  if till > 0 then lib.reduce_note(key('reduced'), till, '') end
  return { more and 1 or 0, done.records, done.results, done.forgotten, unpack(users) }
end

-- How commands are moved between links, and read. What these acts share is in commands-records.lua. All other acts on
-- commands are transactions (see commands/transaction.ts).

-- act: rebind
-- Moves a client's commands when its link comes up ('up'), goes down ('down') or stayed open ('again'): waiting
-- commands are queued or parked, and running ones are sorted by instance. One act moves one part of the queue, in the
-- order of admission. While a link comes up, its binding holds two places: `upTo` is the last place that was waiting
-- when the link came up, and `moved` the last place that was queued on the link. A command that is admitted between two
-- parts gets a later place, and a later part posts it to the node.
-- a: 1 client's hash, 2 node, 3 instance, 4 epoch of the link, 5 'up', 'down' or 'again', 6 '' or the last place of the
--    part before.
-- Returns {how many were queued again, records of the commands that the instance runs, records of those that an earlier
-- instance ran, the last place of this part, or false if it was the last part, ids of the commands that were queued for
-- another instance than the one that they name: the caller ends them}.
-- class: allow_oom
-- needs: lib-commands, lib-due, lib-record
-- rows: all
lib.commands_bind = function(a)
  local bound = lib.commands_link(a[1])
  local boundEpoch, epoch = bound and tonumber(bound.epoch), tonumber(a[4])
  if a[5] == 'up' and boundEpoch and epoch < boundEpoch then return false end
  if a[5] ~= 'up' and epoch ~= boundEpoch then return false end
  if bound and (a[5] == 'down' or bound.nodeId ~= a[2]) then call('SREM', key('bound', bound.nodeId), a[1]) end
  if a[5] == 'down' then
    set(key('client', a[1]), 'b', false)
    return true
  end
  local upTo = get(key('client', a[1]), 'o') or '0'
  local row = call('HMGET', key('conn', a[1]), 'epoch', 'rev')
  local rev = tonumber(row[1] or 0) == epoch and row[2] or ''
  lib.commands_bind_to(a[1], { nodeId = a[2], instanceId = a[3], epoch = text(epoch), rev = rev, upTo = upTo, moved = '0' })
  call('SADD', key('bound', a[2]), a[1])
  return true
end

-- Queues a command on a link. Returns true if it had been queued before. Adds the id to `replaced` if the command was
-- queued for another instance than the one that it names.
lib.commands_queue = function(rec, nodeId, instanceId, replaced)
  local named, before = rec.namedInstanceId, rec.queuedAt
  if named and named ~= instanceId then
    if before then replaced[#replaced + 1] = rec.id end
    return false
  end
  local recovered = rec.recoveredFromNodeId
  if rec.queuedOn and rec.queuedOn ~= nodeId then recovered = rec.queuedOn end
  lib.commands_move(rec, {
    stage = 'queued',
    lastProvenStage = 'queued',
    expectedInstanceId = instanceId,
    nodeId = nodeId,
    queuedOn = nodeId,
    recoveredFromNodeId = recovered,
    queuedAt = before or text(now),
  })
  if not before then lib.due_connected(rec) end
  lib.commands_offer(rec, nodeId)
  return before and true or false
end

-- The most commands that one part moves. Redis answers no other request while an act runs.
lib.commands_part = 100

-- Returns the next part of a client's waiting commands after a position, in order, and whether it is the last part.
lib.commands_next = function(ch, place)
  local part, after = {}, tonumber(place)
  for _, one in ipairs(lib.commands_of(ch, lib.commands_undispatched)) do
    if one.place > after then
      if #part == lib.commands_part then return part, false end
      part[#part + 1] = one
    end
  end
  return part, true
end

-- Queues a part of the waiting commands on the link that came up. Returns how many had been queued before, and the last
-- place of the part, or false if it was the last part.
lib.commands_queue_part = function(a, link, replaced)
  local part, last = lib.commands_next(a[1], link.moved)
  local upTo, requeued = tonumber(link.upTo), 0
  for _, one in ipairs(part) do
    local rec = lib.commands_live(a[1], one.id)
    if one.place > upTo then lib.commands_offer(rec, a[2])
    elseif lib.commands_queue(rec, a[2], a[3], replaced) then requeued = requeued + 1 end
  end
  link.moved = not last and text(part[#part].place)
  if last then link.upTo = nil end
  lib.commands_bind_to(a[1], link)
  return requeued, link.moved
end

-- Parks a part of the waiting commands, unless a link came up since. Returns its last place, or false if it was the
-- last part.
lib.commands_park_part = function(ch, place)
  if lib.commands_link(ch) then return false end
  local part, last = lib.commands_next(ch, place)
  for _, one in ipairs(part) do lib.commands_park(lib.commands_live(ch, one.id)) end
  return not last and text(part[#part].place)
end

lib.commands_sort_running = function(ch, nodeId, instanceId)
  local unfinished, orphaned = {}, {}
  for _, one in ipairs(lib.commands_of(ch, lib.commands_running)) do
    local rec = lib.commands_live(ch, one.id)
    if rec.boundInstanceId == instanceId then
      local recovered = rec.recoveredFromNodeId
      if rec.nodeId and rec.nodeId ~= nodeId then recovered = rec.nodeId end
      lib.commands_move(rec, { nodeId = nodeId, recoveredFromNodeId = recovered })
      unfinished[#unfinished + 1] = lib.commands_text(rec)
    else orphaned[#orphaned + 1] = lib.commands_text(rec) end
  end
  return unfinished, orphaned
end

acts['commands-rebind'] = function(a)
  local place = given(a[6])
  if not place and not lib.commands_bind(a) then return { 0, {}, {}, false, {} } end
  if a[5] == 'down' then return { 0, {}, {}, lib.commands_park_part(a[1], place or '0'), {} } end
  local link = lib.commands_link(a[1])
  -- A newer link came up, or this link is gone: the waiting commands are no longer for this link.
  if not link or tonumber(link.epoch) ~= tonumber(a[4]) or not link.moved then return { 0, {}, {}, false, {} } end
  local replaced = {}
  local requeued, came = lib.commands_queue_part(a, link, replaced)
  if came then return { requeued, {}, {}, came, replaced } end
  local unfinished, orphaned = lib.commands_sort_running(a[1], a[2], a[3])
  return { requeued, unfinished, orphaned, false, replaced }
end

-- act: read
-- Reads the records of commands as they are stored. Parses none of them.
-- a: 1 the stage that a record must have, '' for any; 2 how many texts it must contain; 3 the number of texts of which
--    it must contain one, 0 for any record; then the texts of 2 and those of 3; then for each command its client's hash,
--    its id and its user's hash.
-- Returns {now, then for each command its record; false if there is none, it has another stage, or lacks a text}.
-- class: allow_oom
-- needs: lib-spans
-- rows: 12

-- Captures when an ended command is forgotten: the 26th field of a record (see commands/record.ts).
lib.commands_forget_pattern = '^' .. string.rep('%Z*%z', 25) .. '(%d*)%z'

-- Collects the commands by a key: `groups` has for each key a list of places in the arguments.
lib.commands_group = function(groups, name, place)
  local group = groups[name]
  if not group then
    group = {}
    groups[name] = group
  end
  group[#group + 1] = place
end

-- Reads the live commands of one client into `found`, by place. Adds the others to `ended`, by user.
lib.commands_read_live = function(a, ch, places, found, ended)
  local fields = {}
  for _, place in ipairs(places) do
    fields[#fields + 1] = 's' .. a[place + 1]
    fields[#fields + 1] = 'a' .. a[place + 1]
  end
  local values = call('HMGET', key('client', ch), unpack(fields))
  for i, place in ipairs(places) do
    local state, request = values[2 * i - 1], values[2 * i]
    if state and request then found[place] = state .. request else lib.commands_group(ended, a[place + 2], place) end
  end
end

-- Reads the ended commands of one user into `found`, by place.
lib.commands_read_ended = function(a, uh, places, found)
  for _, span in ipairs(lib.spans_of(uh).ended) do
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

-- Says whether a record has this stage, contains these texts and, if `one_of` is not empty, one of those. Plain
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
  for place = first, #a, 3 do lib.commands_group(clients, a[place], place) end
  for ch, places in pairs(clients) do lib.commands_read_live(a, ch, places, found, ended) end
  for uh, places in pairs(ended) do lib.commands_read_ended(a, uh, places, found) end
  local reply, stage = { text(now) }, given(a[1])
  for place = first, #a, 3 do
    local whole = found[place]
    reply[#reply + 1] = whole and lib.commands_may_match(whole, stage, texts, one_of) and whole or false
  end
  return reply
end

-- act: live
-- Lists the commands of a client that have not ended: those with a field `s` (byte 115) of their state. a: 1 the
-- client's hash. Returns their ids.
-- class: allow_oom
acts['commands-live'] = function(a)
  local ids = {}
  for _, field in ipairs(call('HKEYS', key('client', a[1]))) do
    if string.byte(field) == 115 then ids[#ids + 1] = string.sub(field, 2) end
  end
  return ids
end

-- act: loads
-- Counts the live commands of clients. a: the hash of each client. Returns, for each, how many were dispatched and how
-- many were not. Ends early once the call has read `loads_most` fields, so there may be fewer pairs than clients: call
-- again for the others.
-- class: allow_oom

-- The most fields that one call reads, give or take those of one client (four of each live command, one of which, `s`
-- (byte 115), has its state).
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
    local waiting = tonumber(get(name, 'n') or 0)
    found[#found + 1] = live - waiting
    found[#found + 1] = waiting
  end
  return found
end

-- act: sweep
-- Removes spans whose time is over. a: 1 the most spans to remove. Returns 1 if there are more, else 0.
-- class: allow_oom
-- needs: lib-ended
acts['commands-sweep'] = function(a)
  return lib.ended_sweep(tonumber(a[1])) and 1 or 0
end

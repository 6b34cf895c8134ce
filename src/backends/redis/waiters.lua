-- Waiters: which nodes have callers that wait for a command.

-- library: lib-waiters
-- Registers which nodes have callers that wait for a command, and replies to these nodes. The callers themselves are in
-- the memory of their nodes (see waiters-local.ts). The waits for a command are one text in its client's HASH (see
-- lib-commands). The text has one entry for each node, of three fields, each followed by a NUL: the node, its epoch,
-- and its waits. A wait is a letter (`a`: until the command is acknowledged, `c`: until it ends), the number that its
-- node gave it, and a comma. So the limit on the waits for a command is checked here, and an act that is repeated
-- changes nothing.
-- needs: lib-ended, lib-nodes, lib-record

-- Says whether a command has reached the stage that a waiter waits for.
lib.commands_satisfied = function(waitFor, rec)
  return lib.waiters_ranks[rec.stage] >= lib.waiters_least[waitFor]
end
lib.waiters_ranks = { admitted = 0, queued = 1, dispatched = 2, acknowledged = 3, terminal = 4 }
-- The rank of the stage that each kind of waiter waits for.
lib.waiters_least = { admitted = 0, acknowledged = 3, completed = 4 }

-- Encodes a wait as text. Nothing waits for `admitted`, because every record has reached it.
lib.waiters_text = function(wait)
  return lib.waiters_letters[wait.waitFor] .. wait.number .. ','
end
lib.waiters_letters = { acknowledged = 'a', completed = 'c', admitted = '' }

-- Returns the epoch with which a node's waits are registered; '' for a node that is not attached.
lib.waiters_epoch = function(node) return lib.nodes_epoch(node) or '' end

-- Says whether the callers of an entry still wait. They do not if their node has ended or started again since.
lib.waiters_wait_on = function(entry) return entry.epoch == lib.waiters_epoch(entry.node) end

-- Decodes a text of waits. Returns its entries, one for each node that waits, and then the number of waits.
lib.waiters_parse = function(waits)
  local entries, count = {}, 0
  for node, epoch, list in string.gmatch(waits or '', '(%Z*)%z(%Z*)%z(%Z*)%z') do
    local _, more = string.gsub(list, ',', '')
    entries[#entries + 1] = { node = node, epoch = epoch, waits = list, count = more }
    count = count + more
  end
  return entries, count
end

-- Decodes the waits of a record as waiters_parse does. If they are `most` or more, waits of nodes that are gone are
-- left out.
lib.waiters_of = function(rec, most)
  local entries, count = lib.waiters_parse(rec.waits)
  if count < most then return entries, count end
  local left, present = {}, 0
  for _, entry in ipairs(entries) do
    if lib.waiters_wait_on(entry) then
      left[#left + 1] = entry
      present = present + entry.count
    end
  end
  return left, present
end

-- Says whether a wait is registered, and then whether there is room for one more. `wait`: node, number, waitFor, most.
lib.waiters_find = function(rec, wait)
  local entries, count = lib.waiters_of(rec, wait.most)
  for _, entry in ipairs(entries) do
    if entry.node == wait.node and entry.epoch == lib.waiters_epoch(wait.node) then
      local known = string.find(',' .. entry.waits, ',' .. lib.waiters_text(wait), 1, true)
      if known then return true, true end
    end
  end
  return false, count < wait.most
end

-- Replaces the entries of a record's waits.
lib.waiters_keep = function(rec, entries)
  local nul, texts = '\0', {}
  for _, entry in ipairs(entries) do
    if entry.waits ~= '' then texts[#texts + 1] = entry.node .. nul .. entry.epoch .. nul .. entry.waits .. nul end
  end
  rec.waits = #texts > 0 and table.concat(texts)
  if not rec.span then set(key('client', rec.ch), 'w' .. rec.id, rec.waits) end
end

-- Registers a wait. Waits of an earlier boot of the same node are replaced.
lib.waiters_add = function(rec, wait)
  local epoch, entries = lib.waiters_epoch(wait.node), lib.waiters_of(rec, wait.most)
  local own
  for _, entry in ipairs(entries) do
    if entry.node == wait.node then own = entry end
  end
  if not own then
    own = { node = wait.node, waits = '' }
    entries[#entries + 1] = own
  elseif own.epoch ~= epoch then own.waits = '' end
  own.epoch, own.waits = epoch, own.waits .. lib.waiters_text(wait)
  lib.waiters_keep(rec, entries)
end

-- Removes a wait. Can be repeated. The command does not change.
lib.waiters_remove = function(rec, wait)
  local entries = lib.waiters_parse(rec.waits)
  for _, entry in ipairs(entries) do
    if entry.node == wait.node then
      local list = ',' .. entry.waits
      local first, last = string.find(list, ',' .. lib.waiters_text(wait), 1, true)
      if first then entry.waits = string.sub(list, 2, first) .. string.sub(list, last + 1) end
    end
  end
  lib.waiters_keep(rec, entries)
end

-- Encodes the record and the result as fields of a reply row. For a large result that is stored, the row only has the
-- key and the field where the result is, and the reader of the row fetches it.
lib.waiters_fields = function(rec, result)
  local inlineBytes = 16384
  local fields = { record = lib.commands_text(rec) }
  local stored = rec.resultIn ~= lib.ended_no_room
  if result and stored and #result > inlineBytes then
    fields.large, fields.field = lib.ended_results(rec, rec.resultIn), rec.name
  elseif result then fields.result = result end
  return fields
end

-- Replies to each node with waits that the record satisfies now, and removes these waits. Called after the record was
-- changed. `result`: the result of the command, or nil. `reported`: whether the calling node reported this end. If so,
-- that node replies to its own waits from the answer to this call, and gets no row.
lib.waiters_reply = function(rec, result, reported)
  if not rec.waits then return end
  local ended, fields, left, replied = rec.stage == 'terminal', nil, {}, false
  for _, entry in ipairs(lib.waiters_parse(rec.waits)) do
    -- The pattern begins with the comma before a wait, because the number of a wait may contain an `a` too.
    local open = ended and '' or string.sub(string.gsub(',' .. entry.waits, ',a%w+', ''), 2)
    if open ~= entry.waits then
      replied = true
      if not lib.waiters_wait_on(entry) then open = ''
      elseif not (reported and entry.node == ARGV[2]) then
        fields = fields or lib.waiters_fields(rec, result)
        lib.nodes_post(entry.node, 'reply', fields)
      end
    end
    entry.waits = open
    left[#left + 1] = entry
  end
  if replied then lib.waiters_keep(rec, left) end
end

-- act: attach
-- Registers a wait on a known command. Reading the record and registering are one act, so no end is missed in between.
-- a: 1 client's hash, 2 command, 3 user's hash; 4 number of the wait, 5 node of the caller, 6 what it waits for;
--    7 how many may wait on one command; 8 how long results are shown, ms.
-- Returns {'unknown'}; {'full'}; {'satisfied', record, result or false, now}; {'waiting', record, now}.
-- class: grow
-- needs: lib-commands, lib-ended, lib-record, lib-waiters
-- grouped: yes
reads['waiters-attach'] = function(a)
  lib.commands_want(a[1], a[2], a[3])
end

acts['waiters-attach'] = function(a)
  local wait = { number = a[4], node = a[5], waitFor = a[6], most = tonumber(a[7]) }
  local rec = lib.commands_load(a[1], a[2], a[3])
  if not rec then return { 'unknown' } end
  if lib.commands_satisfied(wait.waitFor, rec) then
    return { 'satisfied', lib.commands_text(rec), lib.commands_result(rec, a[8]), text(now) }
  end
  local known, room = lib.waiters_find(rec, wait)
  if not room then return { 'full' } end
  if not known then lib.waiters_add(rec, wait) end
  return { 'waiting', lib.commands_text(rec), text(now) }
end

-- act: remove
-- Removes a wait that ended, or whose caller hung up. Can be repeated.
-- a: 1 client's hash, 2 command, 3 number of the wait, 4 node of the caller, 5 what it waits for.
-- Returns nothing.
-- class: allow_oom
-- needs: lib-commands, lib-waiters
-- grouped: yes
reads['waiters-remove'] = function(a)
  lib.commands_want(a[1], a[2])
end

acts['waiters-remove'] = function(a)
  local rec = lib.commands_live(a[1], a[2])
  if rec and rec.waits then lib.waiters_remove(rec, { number = a[3], node = a[4], waitFor = a[5] }) end
end

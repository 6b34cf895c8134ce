-- What clients report of their contexts and windows.

-- library: lib-contexts
-- Stores the contexts and windows that a client reports, each as `<reported at>|<task assigned
-- at>|<place>|<task>|<row>`. The act contexts-report describes task, place and row. Task and place contain no bar.
-- needs: lib-connections

-- Reads the contexts or the windows of a report from the arguments `a`. Argument `first` describes this part of the
-- report, and its rows begin at argument `from`. Returns the part (nil if the report does not mention it) and the
-- argument after its rows.
lib.contexts_part = function(a, first, from, at)
  if not given(a[first]) then return nil, from end
  local snapshot, rows, gone = string.match(a[first], '^(%d):(%d+):(%d+)$')
  rows, gone = tonumber(rows), tonumber(gone)
  local part = {
    name = key(at.kind, at.ch), at = at, snapshot = snapshot == '1', ids = {}, tasks = {}, places = {}, rows = {}, removed = {}, before = {},
  }
  for i = 1, rows do
    part.ids[i], part.tasks[i], part.places[i], part.rows[i] = a[from], a[from + 1], a[from + 2], a[from + 3]
    from = from + 4
  end
  for i = 1, gone do part.removed[i] = a[from + i - 1] end
  return lib.contexts_before(part), from + gone
end

-- Adds two members to a part. `before`: the stored values of the ids in the part. `size`: the number of rows that the
-- client would have after the report.
lib.contexts_before = function(part)
  local held = 0
  for _, ids in ipairs({ part.ids, part.snapshot and {} or part.removed }) do
    lib.contexts_slices(#ids, function(from, to)
      for i, value in ipairs(call('HMGET', part.name, unpack(ids, from, to))) do
        part.before[ids[from + i - 1]] = value
        if value then held = held + 1 end
      end
    end)
  end
  part.size = part.snapshot and #part.ids or call('HLEN', part.name) - held + #part.ids
  return part
end

-- Divides the numbers 1 to `count` into ranges that are small enough for one command, and calls `run` for each range.
lib.contexts_slices = function(count, run)
  for from = 1, count, 500 do run(from, math.min(count, from + 499)) end
end

-- Updates the number of workers in each window by the changes of the part.
lib.contexts_tally = function(part)
  local name = key('ctxwin', part.at.ch)
  local workers, busy = {}, {}
  if not part.snapshot then
    for window, counts in pairs(hash(name) or {}) do
      local all, taken = string.match(counts, '^(%d+):(%d+)$')
      workers[window], busy[window] = tonumber(all), tonumber(taken)
    end
  end
  local function count(place, by)
    if place == '' then return end
    local window = string.sub(place, 2)
    workers[window] = (workers[window] or 0) + by
    busy[window] = (busy[window] or 0) + by * tonumber(string.sub(place, 1, 1))
  end
  if not part.snapshot then
    for _, value in pairs(part.before) do
      if value then count(string.match(value, '^%d+|%d*|([^|]*)|'), -1) end
    end
  end
  for _, place in ipairs(part.places) do count(place, 1) end
  call('UNLINK', name)
  for window, all in pairs(workers) do
    if all > 0 then call('HSET', name, window, text(all) .. ':' .. text(busy[window])) end
  end
  call('PEXPIRE', name, lib.connections_ttl)
end

-- Records the contexts that leave with this part: those that the client no longer reports, or reports as closed. Call
-- it before the part is written. A context stays recorded if it is reported again.
lib.contexts_leave = function(part)
  local name, set, leaving = key('ctxleft', part.at.ch), {}, {}
  for i, id in ipairs(part.ids) do
    set[id] = true
    -- The JSON of a row ends at the first line break. Inside JSON strings quotation marks are escaped, so the text
    -- below cannot occur there.
    if string.find(part.rows[i], '^[^\n]*"status":"closed"') then leaving[#leaving + 1] = id end
  end
  for _, id in ipairs(part.removed) do
    if part.before[id] then leaving[#leaving + 1] = id end
  end
  for _, id in ipairs(part.snapshot and call('HKEYS', part.name) or {}) do
    if not set[id] then leaving[#leaving + 1] = id end
  end
  for _, id in ipairs(leaving) do call('HSET', name, id, text(now)) end
  if #leaving > 0 then call('PEXPIRE', name, lib.connections_ttl) end
end

-- If more than `most` contexts have left, forgets those that left first, except contexts that are reported now. Call it
-- after the report is written.
lib.contexts_forget_left = function(part, most)
  local name, left = key('ctxleft', part.at.ch), {}
  local over = call('HLEN', name) - most
  if over <= 0 then return end
  for id, at in pairs(hash(name)) do left[#left + 1] = { id = id, at = tonumber(at) } end
  table.sort(left, function(a, b) return a.at < b.at end)
  for _, one in ipairs(left) do
    if over <= 0 then return end
    if not call('HGET', part.name, one.id) then
      call('HDEL', name, one.id)
      over = over - 1
    end
  end
end

-- Returns the value to store for a context. An assignment begins with the first report of the task. If a report in
-- between shows the context without the task, the next report of the task begins a new assignment.
lib.contexts_value = function(part, i)
  local task = part.tasks[i]
  local assignedAt, before = string.match(part.before[part.ids[i]] or '', '^%d+|(%d*)|[^|]*|([^|]*)|')
  if task ~= before then assignedAt = task == '' and '' or text(now) end
  return table.concat({ text(now), assignedAt, part.places[i], task, part.rows[i] }, '|')
end

-- Writes a part. The part must be within the limits.
lib.contexts_take = function(part)
  local index = key(part.at.index)
  local owner = part.at.owner
  if part.snapshot then
    call('UNLINK', part.name)
    call('ZREMRANGEBYLEX', index, '[' .. owner, '(' .. string.sub(owner, 1, -2) .. '\1')
  end
  lib.contexts_slices(#part.removed, function(from, to)
    local members = {}
    for i = from, to do members[#members + 1] = owner .. part.removed[i] end
    call('HDEL', part.name, unpack(part.removed, from, to))
    call('ZREM', index, unpack(members))
  end)
  lib.contexts_slices(#part.ids, function(from, to)
    local values, members = {}, {}
    for i = from, to do
      append(values, part.ids[i], lib.contexts_value(part, i))
      append(members, 0, owner .. part.ids[i])
    end
    call('HSET', part.name, unpack(values))
    call('ZADD', index, unpack(members))
  end)
  call('PEXPIRE', part.name, lib.connections_ttl)
end

-- act: report
-- Stores a report of a client's contexts and windows, as a whole or not at all, if the client's link is up under this
-- epoch.
-- a: 1 client hash, 2 epoch, 3 most contexts, 4 most windows, 5 most contexts to remember after they left, 6 the
--    contexts and 7 the windows that follow: '' if the report does not mention them, or `<1 for a snapshot, else
--    0>:<how many are set>:<how many are removed>`; from 8 the contexts and then the windows: of each that is set, id,
--    task, place and row, and then the ids that are removed. `row`: a text that is stored as it is; `task`: '' if there
--    is none; `place`: '1' if a context has a task, else '0', and then the window in which it counts as a worker; '' if
--    it is no worker. Tasks and windows contain no bar.
-- Returns 'taken', 'full' or 'fenced'.
-- class: grow
-- needs: lib-connections, lib-contexts
acts['contexts-report'] = function(a)
  local ch = a[1]
  local row = lib.connections_up(ch, a[2], { 'places' })
  if not row then return 'fenced' end
  local owner = row.userId .. '\0' .. row.clientId .. '\0'
  local contexts, from = lib.contexts_part(a, 6, 8, { kind = 'ctx', index = 'ctxs', ch = ch, owner = owner })
  local windows = lib.contexts_part(a, 7, from, { kind = 'win', index = 'wins', ch = ch, owner = owner })
  if contexts and contexts.size > tonumber(a[3]) then return 'full' end
  if windows and windows.size > tonumber(a[4]) then return 'full' end
  if contexts then
    if row.places == '1' then lib.contexts_leave(contexts) end
    lib.contexts_tally(contexts)
    call('HSET', key('conn', ch), 'reportsContexts', '1')
    lib.contexts_take(contexts)
    if row.places == '1' then lib.contexts_forget_left(contexts, tonumber(a[5])) end
  end
  if windows then lib.contexts_take(windows) end
  return 'taken'
end

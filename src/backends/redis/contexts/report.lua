-- Stores a report of a client's contexts and windows, as a whole or not at all, if the client's link is up under this
-- epoch.
-- a: 1 client hash, 2 epoch, 3 most contexts, 4 most windows, 5 the contexts and 6 the windows that follow: '' if the
--    report does not mention them, or `<1 for a snapshot, else 0>:<how many are set>:<how many are removed>`; from 7
--    the contexts and then the windows: of each that is set, id, task, place and row, and then the ids that are
--    removed. `row`: a text that is stored as it is; `task`: '' if there is none; `place`: '1' if a context has a task,
--    else '0', and then the window in which it counts as a worker; '' if it is no worker. Tasks and windows contain no
--    bar.
-- Returns 'taken', 'full' or 'fenced'.
-- class: grow
-- needs: lib-connections, lib-contexts
acts['contexts-report'] = function(a)
  local ch = a[1]
  local row = lib.connections_up(ch, a[2], {})
  if not row then return 'fenced' end
  local owner = row.userId .. '\0' .. row.clientId .. '\0'
  local contexts, from = lib.contexts_part(a, 5, 7, { kind = 'ctx', index = 'ctxs', ch = ch, owner = owner })
  local windows = lib.contexts_part(a, 6, from, { kind = 'win', index = 'wins', ch = ch, owner = owner })
  if contexts and contexts.size > tonumber(a[3]) then return 'full' end
  if windows and windows.size > tonumber(a[4]) then return 'full' end
  if contexts then
    lib.contexts_tally(contexts)
    call('HSET', key('conn', ch), 'reportsContexts', '1')
    lib.contexts_take(contexts)
  end
  if windows then lib.contexts_take(windows) end
  return 'taken'
end

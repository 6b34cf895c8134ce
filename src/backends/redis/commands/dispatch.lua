-- Marks a command as dispatched, before its node writes it to the socket. It is marked at most once, and only for the
-- link that the client is bound to. A node that got no answer repeats the attempt and gets the same answer. It cannot
-- have written the command, because it writes only after an answer.
-- a: 1 client's hash, 2 command, 3 node, 4 epoch of the link, 5 instance, 6 number of the attempt on this link, or ''.
-- Returns {'dispatch', record, params, ms left}, or {'skip'}.
-- class: allow_oom
-- needs: lib-commands, lib-mark, lib-record
-- grouped: yes
reads['commands-dispatch'] = function(a)
  lib.commands_want(a[1], a[2])
  want(key('client', a[1]), 'p' .. a[2])
end

acts['commands-dispatch'] = function(a)
  local rec = lib.commands_live(a[1], a[2])
  if not rec or now >= tonumber(rec.deadline) then return { 'skip' } end
  local attempt = a[6] ~= '' and a[4] .. ':' .. a[6] or nil
  local again = attempt and rec.markedBy == attempt and rec.stage == 'dispatched'
  if rec.stage ~= 'queued' and not again then return { 'skip' } end
  local link = lib.commands_link(a[1])
  if not link or link.nodeId ~= a[3] or tonumber(link.epoch) ~= tonumber(a[4]) then return { 'skip' } end
  if not again then lib.commands_mark(rec, { instance = a[5], attempt = attempt }) end
  local params = get(key('client', a[1]), 'p' .. a[2])
  return { 'dispatch', lib.commands_text(rec), params, text(tonumber(rec.deadline) - now) }
end

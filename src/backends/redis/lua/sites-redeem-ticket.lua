-- Takes a ticket: who comes second gets nothing.
-- a: 1 ticket hash
-- Returns its row; false when there is none, or it came too late.
-- class: settle
acts['sites-redeem-ticket'] = function(a)
  local ticket = hash(key('ticket', a[1]))
  if not ticket then return false end
  call('DEL', key('ticket', a[1]))
  call('ZREM', key('tickets', ticket.session), a[1])
  if tonumber(ticket['until']) <= now then return false end
  return flat(ticket)
end

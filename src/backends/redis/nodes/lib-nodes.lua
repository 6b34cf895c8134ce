-- Nodes: which live, and their mailboxes. `nodes` holds each node that is attached, or was and is not cleared away yet, by when its lease
-- ends; the hash `node` outlives it, so that an epoch never comes twice and who was fenced can be told so.

-- Whether a node may be counted on: false once its lease is over. A node that never attached here has none.
lib.nodes_alive = function(node)
  local lease = fact('lease:' .. node, function() return call('ZSCORE', key('nodes'), node) end)
  return not lease or tonumber(lease) > now
end

-- The mailbox of a node's present boot; false when no such node is attached.
lib.nodes_mailbox = function(node)
  if not call('ZSCORE', key('nodes'), node) then return false end
  local row = call('HMGET', key('node', node), 'epoch', 'fenced')
  return row[1] and not row[2] and key('mailbox', node .. ':' .. row[1])
end

-- Puts a row into the mailbox of a node's present boot. False when no such node is attached.
lib.nodes_post = function(node, kind, fields)
  local mailbox = fact('mailbox:' .. node, function() return lib.nodes_mailbox(node) or false end)
  if not mailbox then return false end
  call('XADD', mailbox, '*', 'kind', kind, unpack(flat(fields)))
  return true
end

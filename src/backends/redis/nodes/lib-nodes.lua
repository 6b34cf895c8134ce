-- Says which nodes are alive, and posts rows to their mailboxes. The ZSET `nodes` has each node that is attached, or
-- that was attached and is not cleaned up yet. The score of a node is the end of its lease. The HASH `node` of a node
-- lasts longer, so that no epoch is given twice and a fenced node is recognized.

-- Returns when a node's lease ends; false for a node that is not attached.
lib.nodes_lease = function(node)
  return fact('lease', node, lib.nodes_read_lease)
end
lib.nodes_read_lease = function(node) return call('ZSCORE', key('nodes'), node) end

-- Says whether a node is alive: false once its lease is over. A node that never attached in this partition has no lease
-- and counts as alive.
lib.nodes_alive = function(node)
  local lease = lib.nodes_lease(node)
  return not lease or tonumber(lease) > now
end

-- Returns the epoch of a node's current boot; false if no such node is attached. The HASH of a node that was cleaned up
-- stays, and says that the node is fenced. The epoch of the calling node is known without a read, because the driver
-- has compared it.
lib.nodes_epoch = function(node)
  if node == ARGV[2] then return ARGV[3] end
  return fact('epoch', node, lib.nodes_read_epoch)
end
lib.nodes_read_epoch = function(node)
  local row = call('HMGET', key('node', node), 'epoch', 'fenced')
  return row[1] and not row[2] and row[1]
end

-- Returns the key of the mailbox of a node's current boot; false if no such node is attached.
lib.nodes_mailbox = function(node)
  local epoch = lib.nodes_epoch(node)
  return epoch and key('mailbox', node, epoch)
end

-- Adds a row to the mailbox of a node's current boot. Returns false if no such node is attached. The rows of a call of
-- grouped acts become one entry. In it, each row begins with its field `kind`.
lib.nodes_post = function(node, kind, fields)
  local mailbox = fact('mailbox', node, lib.nodes_mailbox)
  if not mailbox then return false end
  if not grouping then
    call('XADD', mailbox, '*', 'kind', kind, unpack(flat(fields)))
    return true
  end
  local entry = fact('entry', mailbox, lib.nodes_entry)
  local words, count = entry.words, entry.count
  words[count + 1], words[count + 2] = 'kind', kind
  count = count + 2
  for field, value in pairs(fields) do
    words[count + 1], words[count + 2] = field, value
    count = count + 2
  end
  entry.count = count
  return true
end

-- Begins the entry that a call adds to a mailbox at its end. `words`: the words of the XADD command; `count`: how many.
lib.nodes_entry = function(mailbox)
  local entry = { words = { 'XADD', mailbox, '*' }, count = 3 }
  atEnd(function() call(unpack(entry.words, 1, entry.count)) end)
  return entry
end

-- The link history of users: a row for each client link that opened, and one for each that ended. core/delivery/link-rows.ts writes the same
-- rows in direct mode.
-- needs: lib-history
-- Keeps a row. `conn`: the connection's row. Its field `links` says where and how long rows are kept: hash of the user, hash of the stream,
-- retention (ms), and how many rows. A client that a node of an earlier version bound has none: nothing is kept then.
lib.links_keep = function(conn, kind, details)
  local uh, sth, retentionMs, most = string.match(conn.links or '', '^(%S+) (%S+) (%d+) (%d+)$')
  if not uh then return end
  details.clientType, details.nodeId, details.epoch = conn.clientType, conn.nodeId, tonumber(conn.epoch)
  lib.history_retain({
    id = kind .. ':' .. conn.epoch, kind = kind, userId = conn.userId, suffix = lib.history_links, uh = uh, sth = sth,
    clientId = conn.clientId, instanceId = conn.instanceId, bytes = '0', payload = cjson.encode(details),
    streamMessages = tonumber(most), retentionMs = tonumber(retentionMs),
  })
end

-- `cause`: why the client's previous link had ended; nil, as `previousInstanceId`, where none is known.
lib.links_opened = function(conn, cause, previousInstanceId)
  local details = { cause = cause or cjson.null, openMs = cjson.null, previousInstanceId = previousInstanceId or cjson.null }
  lib.links_keep(conn, 'link_opened', details)
end

lib.links_ended = function(conn, cause, endedAt)
  local openMs = math.max(0, endedAt - tonumber(conn.connectedAt))
  local kind = cause == 'replaced' and 'link_replaced' or 'link_closed'
  lib.links_keep(conn, kind, { cause = cause, openMs = openMs, previousInstanceId = cjson.null })
end

-- Writes the link history of users: a row for each client link that opened, and one for each that ended. In direct
-- mode, which uses no Redis, core/delivery/link-rows.ts writes the same rows.
-- needs: lib-history

-- Adds a row. `conn`: the connection's row. Its field `links` says where and how long rows are kept: hash of the user,
-- hash of the stream, retention (ms), and how many rows. If a node of an earlier version bound the client, the field is
-- absent and no row is added.
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

-- Adds the row of a link that opened. `cause`: why the client's previous link ended. It and `previousInstanceId` are
-- nil if none is known.
lib.links_opened = function(conn, cause, previousInstanceId)
  local details = {
    cause = cause or cjson.null, closeCode = cjson.null, openMs = cjson.null,
    previousInstanceId = previousInstanceId or cjson.null,
  }
  lib.links_keep(conn, 'link_opened', details)
end

-- Adds the row of a link that ended. `code`: that of the client's close frame; nil if it sent none.
lib.links_ended = function(conn, cause, endedAt, code)
  local openMs = math.max(0, endedAt - tonumber(conn.connectedAt))
  local kind = cause == 'replaced' and 'link_replaced' or 'link_closed'
  lib.links_keep(conn, kind, {
    cause = cause, closeCode = tonumber(code) or cjson.null, openMs = openMs, previousInstanceId = cjson.null,
  })
end

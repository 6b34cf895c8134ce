/**
 * Builds the rows of a user's link history: one for each client link that opened, and one for each client link that
 * ended.
 */
import { endCauseAt, type Connection, type LinkEnd } from '../connections/connection.ts';
import { linkRowId, type LinkDetails } from '../connections/link-row.ts';
import { LINK_STREAM, NO_PAYLOAD, type LinkMessageKind, type NewMessage } from '../history/message.ts';

/**
 * Returns the history row of a link that opened. `previous`: the client's previous connection, connected or not; null
 * if there is none.
 */
export function openedRow(connection: Connection, previous: Connection | null): NewMessage {
  const cause = previous && endCauseAt(previous, connection.connectedAt);
  return rowOf(connection, 'link_opened', {
    cause,
    closeCode: null,
    openMs: null,
    previousInstanceId: previous?.instanceId ?? null,
  });
}

/** Returns the history row of a link that ended at `endedAt` (epoch milliseconds). */
export function endedRow(connection: Connection, { cause, closeCode }: LinkEnd, endedAt: number): NewMessage {
  const openMs = Math.max(0, endedAt - connection.connectedAt);
  const kind = cause === 'replaced' ? 'link_replaced' : 'link_closed';
  return rowOf(connection, kind, { cause, closeCode, openMs, previousInstanceId: null });
}

type Changing = Pick<LinkDetails, 'cause' | 'closeCode' | 'openMs' | 'previousInstanceId'>;

function rowOf(connection: Connection, kind: LinkMessageKind, changing: Changing): NewMessage {
  const { userId, clientId, instanceId, clientType, nodeId, epoch } = connection;
  return {
    ...NO_PAYLOAD,
    id: linkRowId(kind, epoch),
    userId,
    suffix: LINK_STREAM,
    kind,
    clientId,
    instanceId,
    commandId: null,
    traceId: null,
    parentSpanId: null,
    error: null,
    link: { clientType, nodeId, epoch, ...changing },
  };
}

/** Publishes and logs the opening and closing of client links. */
import type { ConnectionChange } from '../backend.ts';
import type { ConnectResult } from '../connections/connection-store.ts';
import type { Connection, DisconnectCause, LinkEnd } from '../connections/connection.ts';
import { noteOpened } from '../connections/connections.ts';
import type { Deps } from '../deps.ts';

/** Publishes the event and writes the log line of a client link that opened on this node. */
export function linkOpened(deps: Deps, { kind, connection, previous }: ConnectResult): void {
  const latest = kind === 'replaced' ? (connection.predecessors[0] ?? null) : null;
  const replaced = latest && { replaced: latest.instanceId, cause: latest.cause };
  deps.metrics.count('links_opened', 'client');
  noteOpened(deps, connection, previous !== null);
  deps.log.info({ ...namesOf(connection), kind, ...replaced }, 'link opened');
  publishChange(deps, kind, { connection, cause: latest?.cause ?? null });
}

/**
 * Writes the log line of a client link that closed on this node. `durationMs`: how long the link was open. The event is
 * published later, when the store has recorded the disconnect.
 */
export function linkClosed({ log, clock, metrics }: Deps, connection: ClosedLink, end: LinkEnd): void {
  const { cause, closeCode } = end;
  const durationMs = Math.max(0, clock.now() - connection.connectedAt);
  metrics.count('links_closed', cause);
  log.info({ ...namesOf(connection), cause, closeCode, durationMs }, 'link closed');
}

type ClosedLink = LinkNames & Pick<Connection, 'connectedAt'>;

type Changed = { readonly connection: Connection; readonly cause: DisconnectCause | null };

export function publishChange({ backend, clock }: Deps, change: ConnectionChange, changed: Changed): void {
  backend.bus.publish('connections', { change, ...changed, at: clock.now() });
}

type LinkNames = Pick<Connection, 'userId' | 'clientId' | 'instanceId' | 'epoch' | 'nodeId'>;

function namesOf({ userId, clientId, instanceId, epoch, nodeId }: LinkNames) {
  return { userId, clientId, instanceId, epoch, nodeId };
}

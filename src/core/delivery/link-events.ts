import type { ConnectionChange } from '../bus.ts';
import type { Connection, DisconnectCause } from '../connections/connection.ts';
import type { ConnectResult } from '../connections/store.ts';
import type { Deps } from '../deps.ts';

/** A link of a client opened on this node: an event, and a line in the log. */
export function linkOpened(deps: Deps, { kind, connection }: ConnectResult): void {
  const latest = kind === 'replaced' ? (connection.predecessors[0] ?? null) : null;
  const replaced = latest && { replaced: latest.instanceId, cause: latest.cause };
  deps.metrics.count('links_opened', 'client');
  deps.log.info({ ...namesOf(connection), kind, ...replaced }, 'link opened');
  publishChange(deps, kind, { connection, cause: latest?.cause ?? null });
}

/** A link of a client closed on this node: a line in the log. `durationMs`: how long it was open. Its event follows once the store knows. */
export function linkClosed({ log, clock, metrics }: Deps, connection: Connection, cause: DisconnectCause): void {
  const durationMs = Math.max(0, clock.now() - connection.connectedAt);
  metrics.count('links_closed', cause);
  log.info({ ...namesOf(connection), cause, durationMs }, 'link closed');
}

type Changed = { readonly connection: Connection; readonly cause: DisconnectCause | null };

export function publishChange({ backend, clock }: Deps, change: ConnectionChange, changed: Changed): void {
  backend.bus.publish('connections', { change, ...changed, at: clock.now() });
}

function namesOf({ userId, clientId, instanceId, epoch, nodeId }: Connection) {
  return { userId, clientId, instanceId, epoch, nodeId };
}

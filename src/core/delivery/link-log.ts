import type { Connection, DisconnectCause } from '../connections/connection.ts';
import type { ConnectResult } from '../connections/store.ts';
import type { Deps } from '../deps.ts';

/** One line for each link of a client that opens on this node. */
export function logOpened({ log }: Pick<Deps, 'log'>, { kind, connection }: ConnectResult): void {
  const [latest] = connection.predecessors;
  const replaced = kind === 'replaced' && latest ? { replaced: latest.instanceId, cause: latest.cause } : {};
  log.info({ ...namesOf(connection), kind, ...replaced }, 'link opened');
}

/** One line for each link of a client that closes on this node; `durationMs`: how long it was open. */
export function logClosed(
  { log, clock }: Pick<Deps, 'log' | 'clock'>,
  connection: Connection,
  cause: DisconnectCause,
): void {
  const durationMs = Math.max(0, clock.now() - connection.connectedAt);
  log.info({ ...namesOf(connection), cause, durationMs }, 'link closed');
}

function namesOf({ userId, clientId, instanceId, epoch, nodeId }: Connection) {
  return { userId, clientId, instanceId, epoch, nodeId };
}

/** Publishes `stale` for the silent links of this node. */
import type { Cancel } from '../clock.ts';
import type { Deps } from '../deps.ts';
import { clientKeyText } from '../ids.ts';
import { isStoreUnavailable } from '../errors.ts';
import { PAGE_MAX } from '../limits.ts';
import type { Position } from '../page.ts';
import type { Connection } from './connection.ts';
import { ANY_CONNECTION } from './filter.ts';

/**
 * The interval at which a page of at most SCAN_BUDGET rows is checked, in milliseconds. At this rate 50,000 connections
 * are checked within the 15 s in which a stale connection is not yet dead.
 */
const TURN_MS = 2_500;

export interface StaleWatch {
  /** Checks one page of connections every TURN_MS until it is cancelled. */
  start(): Cancel;
}

/**
 * Publishes `stale` when a link of this node has been silent for STALE_MS, once for each silence. Other nodes watch
 * their own links; the code that closes a link publishes `disconnected`. Every TURN_MS it reads the next page of stale
 * links, and starts a new round after the last page. Only the silences of the previous and of the current round are
 * remembered.
 */
export function createStaleWatch({ backend, clock, nodeId, log }: Deps): StaleWatch {
  let published = new Set<string>();
  let round = new Set<string>();
  let after: Position | null = null;
  let reading = false;

  const publishOnce = (connection: Connection): void => {
    const silence = silenceOf(connection);
    const known = published.has(silence) || round.has(silence);
    round.add(silence);
    if (!known) backend.bus.publish('connections', { change: 'stale', connection, cause: null, at: clock.now() });
  };
  const readPage = async (): Promise<void> => {
    const filter = { ...ANY_CONNECTION, nodeId, status: 'stale' } as const;
    const { rows, next } = await backend.connections.list(filter, { first: PAGE_MAX, after });
    for (const { row } of rows) publishOnce(row);
    after = next;
    if (next === null) [published, round] = [round, new Set()];
  };
  const turn = (): void => {
    if (reading) return;
    reading = true;
    readPage()
      .catch((error: unknown) => {
        if (!isStoreUnavailable(error)) log.warn({ err: error }, 'could not check the registry for silent links');
      })
      .finally(() => (reading = false));
  };
  return { start: () => clock.every(TURN_MS, turn) };
}

/** Returns the key of one silence. It changes with the next sign of life and with a new connection. */
function silenceOf(connection: Connection): string {
  return `${clientKeyText(connection)}/${connection.epoch}/${connection.lastSeenAt}`;
}

import type { Cancel } from '../clock.ts';
import type { Deps } from '../deps.ts';
import { clientKeyText } from '../ids.ts';
import { isAway } from '../errors.ts';
import { PAGE_MAX } from '../limits.ts';
import type { Position } from '../page.ts';
import type { Connection } from './connection.ts';

/** One page a turn: with SCAN_BUDGET rows looked at in each, 50,000 connections are seen within the 15 s between stale and dead. */
const TURN_MS = 2_500;

export interface StaleWatch {
  /** Looks at once a turn until it is cancelled. */
  start(): Cancel;
}

/**
 * Publishes `stale` when a link of this node falls silent for STALE_MS, once for each silence. (Other nodes watch their own links; whoever
 * closes a link publishes `disconnected`.) A turn looks at one page of the registry and goes on from there in the next; what it remembers is
 * the silences of one round.
 */
export function createStaleWatch({ backend, clock, nodeId, log }: Deps): StaleWatch {
  let told = new Set<string>();
  let round = new Set<string>();
  let after: Position | null = null;
  let looking = false;

  const tell = (connection: Connection): void => {
    const silence = silenceOf(connection);
    const known = told.has(silence) || round.has(silence);
    round.add(silence);
    if (!known) backend.bus.publish('connections', { change: 'stale', connection, cause: null, at: clock.now() });
  };
  const look = async (): Promise<void> => {
    const filter = { userId: null, nodeId, status: 'stale' } as const;
    const { rows, next } = await backend.connections.list(filter, { first: PAGE_MAX, after });
    for (const { row } of rows) tell(row);
    after = next;
    if (next === null) [told, round] = [round, new Set()];
  };
  const turn = (): void => {
    if (looking) return;
    looking = true;
    look()
      .catch((error: unknown) => {
        if (!isAway(error)) log.warn({ err: error }, 'the registry could not be looked at for silent links');
      })
      .finally(() => (looking = false));
  };
  return { start: () => clock.every(TURN_MS, turn) };
}

/** A silence is over with the next sign of life, and another connection has its own. */
function silenceOf(connection: Connection): string {
  return `${clientKeyText(connection)}/${connection.epoch}/${connection.lastSeenAt}`;
}

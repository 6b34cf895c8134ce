/**
 * Decides which clients a token may see that is limited to some actions: the clients that advertise such an action. Of
 * their actions, only these are shown.
 */
import { matchesAny } from '../auth/patterns.ts';
import { seenActions, type Sight } from '../auth/sight.ts';
import type { Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import type { ClientKey } from '../ids.ts';
import { COUNT_SCAN, PAGE_MAX } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { gapOf, type ObservedSource } from '../completeness.ts';
import type { DocumentReading } from '../document-reading.ts';
import type { Position, Scan } from '../page.ts';
import { holderOf } from '../shares/holder.ts';
import { ANY_CONNECTION } from './connection-filter.ts';
import type { Connection } from './connection.ts';

/**
 * Returns the connection with only those actions that the requester may see; null if the client advertises none of
 * them.
 */
export function seenConnection({ actions: patterns }: Pick<Sight, 'actions'>, row: Connection): Connection | null {
  if (patterns === undefined) return row;
  const actions = row.actions.filter(({ name }) => matchesAny(patterns, name));
  if (actions.length === 0) return null;
  return actions.length === row.actions.length ? row : { ...row, actions };
}

/** Replaces each row by null whose client the requester may not see. Keeps the order of the rows. */
export function rowsOfSeen<Row extends ClientKey>(
  { backend }: Pick<Deps, 'backend'>,
  requester: Requester,
  rows: MaybePromise<readonly (Row | null)[]>,
): MaybePromise<readonly (Row | null)[]> {
  const sight = seenActions(requester);
  if (sight.actions === undefined) return rows;
  return thenDo(rows, (found) =>
    thenDo(backend.connections.get(found.filter((row) => row !== null)), (connections) => {
      let next = 0;
      return found.map((row) => {
        const connection = row && connections[next++];
        return connection && seenConnection(sight, connection) ? row : null;
      });
    }),
  );
}

/** Ids of clients. `gaps`: contains a source with a gap if not all clients of the user were read. */
export type SeenClients = { readonly ids: ReadonlySet<string>; readonly gaps: readonly ObservedSource[] };

/** Returns the clients that the requester may see; null if its token is not limited to some actions. */
export function seenClients(
  deps: Deps,
  requester: Requester,
  reading?: DocumentReading,
): MaybePromise<SeenClients | null> {
  if (requester?.kind !== 'user') return null;
  const { actions } = seenActions(requester);
  return actions === undefined ? null : search(deps, requester, { userId: requester.userId, actions }, reading);
}

async function search(
  { backend, clock, readTurns }: Deps,
  requester: Requester,
  { userId, actions }: Required<Sight>,
  reading: DocumentReading | undefined,
): Promise<SeenClients> {
  const ids = new Set<string>();
  const filter = { ...ANY_CONNECTION, userId, seen: actions };
  let after: Position | null = null;
  for (let looked = 0; looked < COUNT_SCAN; looked += PAGE_MAX) {
    const page = { first: PAGE_MAX, after };
    const scan: Scan<Connection> = await readTurns.run(holderOf(requester), () =>
      backend.connections.list(filter, page, reading),
    );
    for (const { row } of scan.rows) ids.add(row.clientId);
    if (scan.next === null) return { ids, gaps: [] };
    after = scan.next;
  }
  return { ids, gaps: [gapOf('connections', clock.now(), null, 'limit_reached')] };
}

import type { Connection, DisconnectCause } from '../../../core/connections/connection.ts';
import type { ClientKey } from '../../../core/ids.ts';
import type { Known } from './known.ts';
import { asOf, decodeConnection } from './rows.ts';
import { standingOf, type Standing } from './look.ts';
import { listOf } from '../replies.ts';
import { scattered } from '../store/scatter.ts';
import type { Store } from '../store/store.ts';
import type { Reply } from '../types.ts';

/** Rows that one act reads at most: Redis blocks while an act runs. */
const READ_BATCH = 64;

export type GetParts = {
  readonly store: Store;
  readonly known: Known;
  readonly revisionOf: (actions: Connection['actions']) => string;
};

/** The rows of clients as they read now: one round trip in each partition concerned. What this process knows of a link is not sent again. */
export function getConnections(parts: GetParts, keys: readonly ClientKey[]): Promise<readonly (Connection | null)[]> {
  const { store, known, revisionOf } = parts;
  return scattered(store, keys, {
    most: READ_BATCH,
    async ask(partition, some) {
      const before = some.map((key) => known.last(key));
      const args = some.flatMap(({ userId, clientId }, i) => {
        const one = before[i];
        return [store.hash(userId, clientId), one ? one.epoch : '', one ? revisionOf(one.actions) : ''];
      });
      const [now, over, ...rows] = listOf(await store.act(partition, 'connections-get', args));
      const standing = standingOf(now, over);
      return some.map((_, i) => read({ known, standing, before: before[i] ?? null }, rows[i] ?? null));
    },
  });
}

type Reading = { readonly known: Known; readonly standing: Standing; readonly before: Connection | null };

function read({ known, standing, before }: Reading, row: Reply): Connection | null {
  const [kind, ...rest] = listOf(row);
  if (kind === 'row') return asOf(known.note(decodeConnection(rest[0] ?? null)), standing);
  if (kind !== 'same') {
    if (before) known.forget(before, before.epoch);
    return null;
  }
  const [nodeId, lastSeenAt, disconnectedAt, disconnectCause] = rest;
  const stamps = {
    nodeId: String(nodeId),
    lastSeenAt: Number(lastSeenAt),
    disconnectedAt: typeof disconnectedAt === 'string' ? Number(disconnectedAt) : null,
    disconnectCause: typeof disconnectCause === 'string' ? (disconnectCause as DisconnectCause) : null,
  };
  const now = asOf(before, standing, stamps);
  if (now?.disconnectedAt === null) return known.note(now);
  // It is not up any more.
  if (before) known.forget(before, before.epoch);
  return now;
}

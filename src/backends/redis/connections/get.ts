/** Reads the rows of clients by key. Changes nothing. */
import type { Connection, DisconnectCause } from '../../../core/connections/connection.ts';
import type { ClientKey } from '../../../core/ids.ts';
import type { Known } from './known.ts';
import { asOf, decodeConnection } from './rows.ts';
import { leaseViewOf, type LeaseView } from './look.ts';
import { listOf } from '../replies.ts';
import { scattered } from '../store/scatter.ts';
import type { Store } from '../store/store.ts';
import type { Reply } from '../types.ts';

/** The most rows that one act reads. Redis answers no other request while an act runs. */
const READ_BATCH = 64;

export type GetParts = {
  readonly store: Store;
  readonly known: Known;
  readonly revisionOf: (actions: Connection['actions']) => string;
};

/**
 * Reads the connections of clients as they are now, one answer per key, in the order of the keys. Takes one round trip
 * in each partition concerned. Redis sends only what this process does not know of a link yet.
 */
export function getConnections(parts: GetParts, keys: readonly ClientKey[]): Promise<readonly (Connection | null)[]> {
  const { store, known, revisionOf } = parts;
  return scattered(store, keys, {
    most: READ_BATCH,
    async ask(partition, some) {
      const found = new Map<ClientKey, Connection | null>();
      // An act returns the rows that one call may return, and the next one continues.
      for (let left = some; left.length > 0;) {
        const before = left.map((key) => known.last(key));
        const args = left.flatMap(({ userId, clientId }, i) => {
          const one = before[i];
          return [store.hash(userId, clientId), one ? one.epoch : '', one ? revisionOf(one.actions) : ''];
        });
        const [now, over, ...rows] = listOf(await store.act(partition, 'connections-get', args));
        const leases = leaseViewOf(now, over);
        const later: ClientKey[] = [];
        left.forEach((key, i) => {
          const row = rows[i] ?? null;
          if (listOf(row)[0] === 'later') later.push(key);
          else found.set(key, read({ known, leases, before: before[i] ?? null }, row));
        });
        left = later;
      }
      return some.map((key) => found.get(key) ?? null);
    },
  });
}

type Reading = { readonly known: Known; readonly leases: LeaseView; readonly before: Connection | null };

function read({ known, leases, before }: Reading, row: Reply): Connection | null {
  const [kind, ...rest] = listOf(row);
  if (kind === 'row') return asOf(known.note(decodeConnection(rest[0] ?? null)), leases);
  if (kind !== 'same') {
    if (before) known.forget(before, before.epoch);
    return null;
  }
  const [nodeId, lastSeenAt, disconnectedAt, disconnectCause, closeCode] = rest;
  const stamps = {
    nodeId: String(nodeId),
    lastSeenAt: Number(lastSeenAt),
    disconnectedAt: typeof disconnectedAt === 'string' ? Number(disconnectedAt) : null,
    disconnectCause: typeof disconnectCause === 'string' ? (disconnectCause as DisconnectCause) : null,
    closeCode: typeof closeCode === 'string' ? Number(closeCode) : null,
  };
  const now = asOf(before, leases, stamps);
  if (now?.disconnectedAt === null) return known.note(now);
  // The link is no longer up.
  if (before) known.forget(before, before.epoch);
  return now;
}

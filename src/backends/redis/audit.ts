/**
 * Core's AuditStore over Redis: the record of what administrators did, as one chain of rows in the namespace's first
 * partition. Core computes and verifies the MACs of the chain; this file only stores them.
 */
import type { AppendResult, AuditAppend, AuditStore, ListedAct } from '../../core/audit/audit-rows.ts';
import type { RedisParts } from './parts.ts';
import type { Store } from './store.ts';
import { listOf, type Fields } from './types.ts';

const PARTITION = 0;

export function createRedisAudit({ store }: Pick<RedisParts, 'store'>): AuditStore {
  const act = async (name: string, args: Parameters<Store['act']>[2]): Promise<readonly Fields[]> =>
    listOf(await store.act(PARTITION, name, args));
  return {
    async head() {
      const [seq, mac] = await act('audit-head', []);
      return { seq: Number(seq), mac: String(mac) };
    },
    append: async (append) => resultOf(await act('audit-append', argsOf(store, append))),
    async list(userId, { before, first }) {
      const flat = await act('audit-list', [userId === null ? null : store.hash(userId), before, first]);
      const found: ListedAct[] = [];
      for (let at = 0; at < flat.length; at += 3) {
        const [seq, line, outcome] = flat.slice(at, at + 3);
        // There is no line if the index names a row that was removed.
        if (typeof line !== 'string') continue;
        found.push({ seq: Number(seq), act: line, outcome: typeof outcome === 'string' ? outcome : null });
      }
      return found;
    },
    lines: async (after, first) => (await act('audit-lines', [after, first])).map(String),
  };
}

function argsOf(store: Store, { sealed, dropThrough, rate }: AuditAppend): Parameters<Store['act']>[2] {
  const { row, mac, line } = sealed;
  const userId = row.kind === 'act' ? row.subject.userId : undefined;
  const limited = rate && row.kind === 'act' ? [store.hash(row.who, row.action), rate.limit, rate.windowMs] : [];
  return [
    ...[row.prev, row.seq, mac, line, row.at, row.kind],
    ...[userId === undefined ? null : store.hash(userId), row.kind === 'outcome' ? row.of : null, dropThrough],
    ...limited,
  ];
}

function resultOf([kind, ...rest]: readonly Fields[]): AppendResult {
  if (kind === 'moved') return { kind, head: { seq: Number(rest[0]), mac: String(rest[1]) } };
  if (kind === 'limited') return { kind, retryAfterMs: Number(rest[0]) };
  const [count, firstSeq, firstAt] = rest.map(Number);
  return { kind: 'appended', extent: { count: count ?? 0, firstSeq: firstSeq ?? null, firstAt: firstAt ?? null } };
}

/**
 * Core's AuditStore over Redis: stores the audit as one chain of rows in the namespace's first partition.
 *
 * Core computes and verifies the MACs of the chain.
 */
import type { AppendResult, AuditAppend, AuditStore, ListedAct } from '../../core/audit/audit-store.ts';
import type { RedisDeps } from './deps.ts';
import type { Store } from './store.ts';
import { listOf, textOr, type Fields, type ReadCommand, type Reply } from './replies.ts';

const PARTITION = 0;

export function createRedisAudit({ store }: Pick<RedisDeps, 'store'>): AuditStore {
  const rows = store.key(PARTITION, 'audit');
  return {
    async head() {
      const [head] = await store.read([['HMGET', store.key(PARTITION, 'audithead'), 'seq', 'mac']]);
      const [seq, mac] = listOf(head);
      return { seq: Number(seq ?? 0), mac: String(mac ?? '') };
    },
    append: async (append) => resultOf(listOf(await store.act(PARTITION, 'audit-append', argsOf(store, append)))),
    async list(userId, { before, first }) {
      const index =
        userId === null ? store.key(PARTITION, 'auditacts') : store.key(PARTITION, 'auditof', store.hash(userId));
      const from = before === null ? '+inf' : `(${before}`;
      const [found] = await store.read([['ZRANGE', index, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, first]]);
      const seqs = listOf(found).map(String);
      const ends = await store.read(seqs.map((seq) => ['ZRANGEBYSCORE', store.key(PARTITION, 'auditends'), seq, seq]));
      // Each value is the number of an act and the number of the row with its outcome.
      const outcomes = ends.map((end) => String(listOf(end)[0] ?? '').split(':')[1] ?? '0');
      const lines = (await store.read([...seqs, ...outcomes].map((seq) => rowOf(rows, seq)))).map(lineOf);
      return seqs.flatMap((seq, i): readonly ListedAct[] => {
        // The line is null if the index names a row that was removed.
        const act = lines[i] ?? null;
        return act === null ? [] : [{ seq: Number(seq), act, outcome: lines[seqs.length + i] ?? null }];
      });
    },
    async lines(after, first) {
      const [found] = await store.read([['XRANGE', rows, `${after + 1}-0`, '+', 'COUNT', first]]);
      return listOf(found).map((entry) => lineOf([entry]) ?? '');
    },
  };
}

function rowOf(rows: string, seq: string): ReadCommand {
  return ['XRANGE', rows, `${seq}-0`, `${seq}-0`];
}

/** Returns the line of the first row in a reply of XRANGE (see lib-audit in audit.lua); null if there is none. */
function lineOf(reply: Reply): string | null {
  const [, fields] = listOf(listOf(reply)[0]);
  return textOr(listOf(fields)[1]);
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

/** Defines the contract tests of the port AuditStore, which keeps the audit log. Every backend must pass them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ChainVerifier, type ChainReport } from '../../src/core/audit/audit-chain.ts';
import type { AuditAppend, AuditStore } from '../../src/core/audit/audit-store.ts';
import { keyIdOf, openRow, sealRow, type AuditEntry, type AuditSign } from '../../src/core/audit/audit-rows.ts';
import { createAuditTrail, type AuditBounds, type AuditTrail } from '../../src/core/audit/audit.ts';
import type { Principal } from '../../src/core/auth/principal.ts';
import { silentLog } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { createCrypto } from '../../src/platform/system.ts';

/** Two stores over one audit chain, as two processes have them. The test controls their time. */
export type AuditBench = {
  readonly stores: readonly [AuditStore, AuditStore];
  now(): number;
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
};

export const { sign } = createCrypto('the key of the rows');
export const OPS: Principal = { kind: 'admin', name: 'ops', expiresAt: null };

/** Reads the whole chain and verifies it. */
export async function verified(store: AuditStore, keys: readonly AuditSign[] = [sign]): Promise<ChainReport> {
  const verifier = new ChainVerifier(keys);
  for (const line of await store.lines(0, 100_000)) verifier.add(line);
  return verifier.report();
}

function actOf(userId: string | null): AuditEntry {
  const subject = userId === null ? { nodeId: 'n1' } : { userId, clientId: 'tab' };
  return { kind: 'act', who: 'admin:ops', action: 'disconnect', subject, reason: null, requestId: null };
}

/** Defines the tests that every AuditStore must pass. */
export function auditContract(name: string, make: () => Promise<AuditBench>): void {
  describe(`the audit on ${name}`, () => {
    let bench: AuditBench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());
    const next = async (entry: AuditEntry, over: Partial<AuditAppend> = {}): Promise<AuditAppend> => {
      const { seq, mac } = await bench.stores[0].head();
      const sealed = sealRow({ seq: seq + 1, prev: mac, at: bench.now(), node: 'n1', ...entry }, sign);
      return { sealed, dropThrough: null, rate: null, ...over };
    };
    const add = async (entry: AuditEntry, over: Partial<AuditAppend> = {}) =>
      bench.stores[0].append(await next(entry, over));
    const trail = (nodeId: string, store: AuditStore, bounds: Partial<AuditBounds> = {}, key = sign): AuditTrail => {
      const now = (): number => bench.now();
      const clock = { now, monotonic: now, after: () => () => {}, every: () => () => {} };
      const quiet = { log: silentLog, metrics: silentMetrics };
      return createAuditTrail({ store, clock, ...quiet, nodeId, sign: key, maxRows: 1000, keepMs: 1e12, ...bounds });
    };

    it('is empty at first, and then shows each process all appended rows', async () => {
      const [one, other] = bench.stores;
      expect(await one.head()).toEqual({ seq: 0, mac: '' });
      expect(await one.lines(0, 10)).toEqual([]);
      const first = await next(actOf('alice'));
      expect(await one.append(first)).toEqual({
        kind: 'appended',
        extent: { count: 1, firstSeq: 1, firstAt: bench.now() },
      });
      expect(await other.head()).toEqual({ seq: 1, mac: first.sealed.mac });
      expect(await other.lines(0, 10)).toEqual([first.sealed.line]);
    });

    it('refuses a row that does not follow the newest one, and names the newest', async () => {
      const early = await next(actOf('alice'));
      const late = await next(actOf('bob'));
      await bench.stores[0].append(early);
      const head = { seq: 1, mac: early.sealed.mac };
      expect(await bench.stores[1].append(late)).toEqual({ kind: 'moved', head });
      expect(await bench.stores[1].head()).toEqual(head);
      expect((await verified(bench.stores[0])).rows).toBe(1);
    });

    it('lists acts newest first with their outcomes, of one user or of all, page by page', async () => {
      for (const user of ['alice', 'bob', null, 'alice']) await add(actOf(user));
      await add({ kind: 'outcome', of: 1, outcome: 'closed' });
      const [one] = bench.stores;
      const all = await one.list(null, { before: null, first: 10 });
      expect(all.map(({ seq }) => seq)).toEqual([4, 3, 2, 1]);
      expect(all.map(({ outcome }) => (outcome === null ? null : openRow(outcome)?.row))).toMatchObject([
        ...[null, null, null],
        { kind: 'outcome', outcome: 'closed' },
      ]);
      expect((await one.list('alice', { before: null, first: 1 })).map(({ seq }) => seq)).toEqual([4]);
      expect((await one.list('alice', { before: 4, first: 10 })).map(({ seq }) => seq)).toEqual([1]);
      expect(await one.list('nobody', { before: null, first: 10 })).toEqual([]);
    });

    it('removes the oldest rows together with the row that records it, from the listings too', async () => {
      for (const user of ['alice', 'bob', 'alice']) await add(actOf(user));
      const [line = ''] = await bench.stores[0].lines(1, 1);
      const throughMac = openRow(line)?.mac ?? '';
      const result = await add({ kind: 'trim', through: 2, throughMac }, { dropThrough: 2 });
      expect(result).toMatchObject({ kind: 'appended', extent: { count: 2, firstSeq: 3 } });
      const [one] = bench.stores;
      expect((await one.list(null, { before: null, first: 10 })).map(({ seq }) => seq)).toEqual([3]);
      expect((await one.list('alice', { before: null, first: 10 })).map(({ seq }) => seq)).toEqual([3]);
      expect(await one.list('bob', { before: null, first: 10 })).toEqual([]);
      expect(await verified(one)).toMatchObject({ rows: 2, firstSeq: 3, lastSeq: 4, fault: null });
    });

    it('limits the acts of one administrator within a time, and reports when the next is possible', async () => {
      const rate = { limit: 2, windowMs: 10_000 };
      await add(actOf('alice'), { rate });
      await bench.advance(4_000);
      await add(actOf('alice'), { rate });
      expect(await add(actOf('alice'), { rate })).toEqual({ kind: 'limited', retryAfterMs: 6_000 });
      const other = { ...actOf('alice'), who: 'admin:other' } as AuditEntry;
      expect((await add(other, { rate })).kind).toBe('appended');
      await bench.advance(6_000);
      expect((await add(actOf('alice'), { rate })).kind).toBe('appended');
    });

    it('never forks while two processes append at once', async () => {
      const trails = bench.stores.map((store, i) => trail(`n${i}`, store));
      const acts = Array.from({ length: 40 }, async (_, i) => {
        const subject = { userId: 'alice', commandId: `c${i}` };
        const act = await trails[i % 2]?.record(OPS, { action: 'cancel', subject });
        await act?.end('cancelled');
      });
      await Promise.all(acts);
      expect(await verified(bench.stores[0])).toMatchObject({ rows: 80, firstSeq: 1, lastSeq: 80, fault: null });
      const listed = await bench.stores[1].list('alice', { before: null, first: 100 });
      expect(listed.filter(({ outcome }) => outcome !== null)).toHaveLength(40);
    });

    it('keeps a bounded number of rows, and verifies from the anchor on', async () => {
      const bounded = trail('n1', bench.stores[0], { maxRows: 100 });
      for (let i = 0; i < 260; i++) await bounded.record(OPS, { action: 'drain', subject: { nodeId: 'n1' } });
      await bounded.record(OPS, { action: 'drain', subject: { nodeId: 'n1' } });
      const report = await verified(bench.stores[0]);
      expect(report.fault).toBeNull();
      expect(report.rows).toBeLessThanOrEqual(112);
      expect(report.firstSeq).toBeGreaterThan(100);
    });

    it('goes on under another key, and names the key of each row', async () => {
      const [old, present] = ['the old key', 'the present key'].map((text) => createCrypto(text).sign);
      if (!old || !present) throw new Error('no keys');
      for (const [at, key] of [old, present].entries()) {
        const act = { action: 'drain', subject: { nodeId: 'n1' } } as const;
        const store = bench.stores[at] ?? bench.stores[0];
        await (await trail('n1', store, {}, key).record(OPS, act)).end('requested');
      }
      const whole = { rows: 4, firstSeq: 1, lastSeq: 4, fault: null };
      const [one] = bench.stores;
      expect(await verified(one, [present, old])).toMatchObject({ ...whole, unchecked: [] });
      const unchecked = [{ key: keyIdOf(old), rows: 2, firstSeq: 1, lastSeq: 2 }];
      expect(await verified(one, [present])).toMatchObject({ ...whole, unchecked });
    });

    it('removes rows that are too old', async () => {
      const aged = trail('n1', bench.stores[0], { keepMs: 86_400_000 });
      for (let i = 0; i < 3; i++) await aged.record(OPS, { action: 'drain', subject: { nodeId: 'n1' } });
      await bench.advance(2 * 86_400_000);
      await aged.record(OPS, { action: 'drain', subject: { nodeId: 'n1' } });
      await aged.record(OPS, { action: 'drain', subject: { nodeId: 'n1' } });
      expect(await verified(bench.stores[0])).toMatchObject({ firstSeq: 4, fault: null });
    });
  });
}

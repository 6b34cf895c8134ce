/**
 * Defines the contract tests of the port DedupStore, which shows what deduplication remembers of message ids. Every
 * backend must pass them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import type { DedupStore } from '../../src/core/dedup/dedup.ts';
import type { HistoryStore, IngestedMessage } from '../../src/core/history/message.ts';
import { DEDUP_TTL_MS, SIGHTINGS_PER_COMMAND } from '../../src/core/limits.ts';
import { BOUND, dispatched, ending, keyFor, type Bench, type MakeBench } from './kit/bench.ts';
import { shareBounds, type ShareBounds } from '../../src/core/shares/share-bounds.ts';
import type { SharesBench } from './command-shares.ts';
import { newMessage } from './kit/history-model.ts';

const EVERY = { afterTime: null, beforeTime: null, kinds: null };
const ALL = { first: 1000, after: null };

function event(id: string, over: Partial<IngestedMessage> = {}): IngestedMessage {
  return { ...newMessage({ suffix: 'sites/a/events' }), clientId: 'tab', id, ...over };
}

/** Defines the tests that every DedupStore must pass. They fill the store through the acts that use it. */
export function dedupContract(name: string, make: MakeBench, { runs = 100 } = {}): void {
  describe(`deduplication on ${name}`, () => {
    let bench: Bench;
    let history: HistoryStore;
    let dedup: DedupStore;
    beforeEach(async () => {
      bench = await make();
      ({ history, dedup } = bench.backend);
    });
    afterEach(() => bench.close());

    const counted = async (windowSeconds = 3600) => {
      const { seen, unique, duplicates } = await dedup.stats(windowSeconds);
      return { seen, unique, duplicates };
    };
    const ids = async (userId = 'alice') =>
      (await history.messages(userId, 'sites/a/events', EVERY, ALL))?.rows.map(({ row }) => row.id);

    it('retains a message once, even if another sender repeats it or its content has changed', async () => {
      expect(await history.ingest(event('m1'))).toMatchObject({ kind: 'retained', message: { id: 'm1' } });
      expect(await history.ingest(event('m1'))).toEqual({ kind: 'duplicate', messageId: 'm1' });
      expect(await history.ingest(event('m1', { instanceId: 'i2', suffix: 'other' }))).toMatchObject({
        kind: 'duplicate',
      });
      expect(await ids()).toEqual(['m1']);
      expect(await history.messages('alice', 'other', EVERY, ALL)).toBeNull();
      expect(await counted()).toEqual({ seen: 3, unique: 1, duplicates: 2 });
    });

    it('identifies a message by user, client and id together', async () => {
      for (const over of [{}, { userId: 'bob' }, { clientId: 'other' }, { id: 'm2' }])
        expect(await history.ingest(event('m1', over))).toMatchObject({ kind: 'retained' });
      expect(await counted()).toEqual({ seen: 4, unique: 4, duplicates: 0 });
    });

    it('does not confuse the parts of one key with those of another', async () => {
      for (const [userId, clientId, id] of [
        ['a b', 'c', 'd'],
        ['a', 'b', 'c:d'],
        ['a', 'b:c', 'd'],
        ['a b', 'c:d', 'd'],
      ] as const)
        expect(await history.ingest(event(id, { userId, clientId }))).toMatchObject({ kind: 'retained' });
    });

    it('forgets a message after its TTL, which a duplicate does not renew', async () => {
      await history.ingest(event('m1'));
      await bench.advance(DEDUP_TTL_MS - 1);
      expect(await history.ingest(event('m1'))).toMatchObject({ kind: 'duplicate' });
      await bench.advance(1);
      expect(await history.ingest(event('m1'))).toMatchObject({ kind: 'retained' });
      expect(await ids()).toEqual(['m1', 'm1']);
      expect(await counted()).toEqual({ seen: 3, unique: 2, duplicates: 1 });
    });

    it('counts within whole buckets of the window, the current one included', async () => {
      const { grainSeconds } = await dedup.stats(10);
      await history.ingest(event('m1'));
      await bench.advance(grainSeconds * 1000);
      await history.ingest(event('m2'));
      expect((await counted(grainSeconds)).seen).toBe(1);
      expect((await counted(grainSeconds + 1)).seen).toBe(2);
      await bench.advance(3600_000 - grainSeconds * 1000);
      expect((await counted()).seen).toBe(1);
      await bench.advance(grainSeconds * 1000);
      expect((await counted()).seen).toBe(0);
    });

    it('counts the ends that a link reports in the act that records them, and recognizes repeated ones', async () => {
      await bench.backend.commands.rebind(keyFor('c1'), BOUND, 'up');
      await dispatched(bench, 'c1');
      expect(await counted()).toEqual({ seen: 0, unique: 0, duplicates: 0 });
      for (let i = 0; i < 3; i++) await bench.backend.commands.finish(keyFor('c1'), ending());
      await bench.backend.commands.finish(keyFor('c1'), ending({ kind: 'error' }));
      await bench.backend.commands.finish(keyFor('unknown'), ending());
      expect(await counted()).toEqual({ seen: 4, unique: 2, duplicates: 2 });
      const [command] = await bench.backend.commands.get([keyFor('c1')]);
      expect(command?.sightings.map(({ messageId, count }) => [messageId, count])).toEqual([
        ['c1:result:i1', 3],
        ['c1:error:i1', 1],
      ]);
    });

    it('recognizes a repeated end for as long as its command has a record, and keeps its id free for hosts', async () => {
      await bench.backend.commands.rebind(keyFor('c1'), BOUND, 'up');
      await dispatched(bench, 'c1');
      await bench.backend.commands.finish(keyFor('c1'), ending());
      const end = event('c1:result:i1', keyFor('c1'));
      expect(await history.ingest(end)).toMatchObject({ kind: 'retained' });
      expect(await history.ingest(end)).toMatchObject({ kind: 'duplicate' });
      expect(await counted()).toEqual({ seen: 3, unique: 2, duplicates: 1 });
      await bench.advance(DEDUP_TTL_MS);
      await bench.backend.commands.finish(keyFor('c1'), ending());
      expect(await counted()).toEqual({ seen: 4, unique: 2, duplicates: 2 });
      const { liveKeys } = await dedup.stats(60);
      expect([0, null]).toContain(liveKeys);
    });

    it('counts an end as repeated if the record of its command has no room to remember it', async () => {
      await bench.backend.commands.rebind(keyFor('c1'), BOUND, 'up');
      await dispatched(bench, 'c1');
      const more = 3;
      for (let i = 1; i <= SIGHTINGS_PER_COMMAND + more; i++)
        await bench.backend.commands.finish(keyFor('c1'), ending({ instanceId: `i${i}` }));
      expect(await counted()).toMatchObject({ unique: SIGHTINGS_PER_COMMAND, duplicates: more });
    });

    it('is not changed by being observed', async () => {
      await history.ingest(event('m1'));
      await bench.advance(DEDUP_TTL_MS - 1);
      await dedup.stats(3600);
      await dedup.backend();
      await bench.advance(1);
      expect(await history.ingest(event('m1'))).toMatchObject({ kind: 'retained' });
    });

    it('describes itself without secrets, and reports whether its counters are exact', async () => {
      const backend = await dedup.backend();
      expect(Object.keys(backend).sort()).toEqual(['implementation', 'namespace', 'ttlSeconds']);
      expect(backend.ttlSeconds).toBe(DEDUP_TTL_MS / 1000);
      expect((await dedup.stats(60)).exact).toBe(bench.backend.capabilities.exactDedupCounters);
    });

    it('behaves like a plain list, for any sequence of messages and times', async () => {
      const act = fc.record({
        id: fc.constantFrom('m1', 'm2', 'm3'),
        userId: fc.constantFrom('a', 'b'),
        ms: fc.constantFrom(0, 0, 1, 9_999, 10_000, 59_999, 60_000, 119_999, 120_000, 600_000),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
          const own = await make();
          const model: { key: string; at: number; first: boolean }[] = [];
          for (const { id, userId, ms } of acts) {
            const at = own.now();
            const key = `${userId} ${id}`;
            const first = !model.some((row) => row.first && row.key === key && row.at > at - DEDUP_TTL_MS);
            model.push({ key, at, first });
            const { kind } = await own.backend.history.ingest(event(id, { userId }));
            expect(kind).toBe(first ? 'retained' : 'duplicate');
            await own.advance(ms);
            const bucket = (time: number): number => Math.floor(time / 10_000);
            for (const seconds of [10, 60, 3600]) {
              const within = model.filter((row) => bucket(row.at) > bucket(own.now()) - seconds / 10);
              const unique = within.filter((row) => row.first).length;
              const stats = await own.backend.dedup.stats(seconds);
              if (!stats.exact) continue;
              expect(stats).toMatchObject({ seen: within.length, unique, duplicates: within.length - unique });
            }
          }
          await own.close();
        }),
        { numRuns: runs },
      );
    });
  });
}

/** Defines the tests of the share `dedup_marks`. */
export function dedupShares(name: string, make: (bounds: ShareBounds) => Promise<SharesBench>): void {
  describe(`the share of deduplication marks on ${name}`, () => {
    let bench: SharesBench;
    const opened = async (guarantee: number, total: number): Promise<HistoryStore> => {
      bench = await make(shareBounds({ dedup_marks: { guarantee, total } }));
      return bench.backend.history;
    };
    afterEach(() => bench.close());
    const kindOf = async (history: HistoryStore, userId: string, id: string): Promise<string> =>
      (await history.ingest(event(id, { userId }))).kind;

    it('drops marks of the user who is most over the guarantee, oldest first, and the counters are not exact', async () => {
      const history = await opened(2, 4);
      for (const id of ['a1', 'a2']) await kindOf(history, 'alice', id);
      expect((await bench.backend.dedup.stats(3600)).exact).toBe(true);
      for (let i = 0; i < 10; i++) expect(await kindOf(history, 'mallory', `m${i}`)).toBe('retained');
      expect(await bench.used('dedup_marks')).toBe(4);
      for (const id of ['a1', 'a2']) expect(await kindOf(history, 'alice', id)).toBe('duplicate');
      for (const id of ['m9', 'm8']) expect(await kindOf(history, 'mallory', id)).toBe('duplicate');
      expect(await kindOf(history, 'mallory', 'm7')).toBe('retained');
      expect(await kindOf(history, 'mallory', 'm8')).toBe('retained');
      const { dedup } = bench.backend;
      expect(await dedup.stats(10)).toMatchObject({ exact: false, seen: 18, duplicates: 4 });
      await bench.advance(2 * DEDUP_TTL_MS);
      expect((await dedup.stats(10)).exact).toBe(true);
      expect((await dedup.stats(3600)).exact).toBe(false);
    });

    it('drops marks that have expired before those of the user who is most over the guarantee', async () => {
      const history = await opened(3, 6);
      for (const id of ['m1', 'm2', 'm3']) await kindOf(history, 'mallory', id);
      await bench.advance(DEDUP_TTL_MS);
      for (const id of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']) await kindOf(history, 'alice', id);
      for (const id of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'])
        expect(await kindOf(history, 'alice', id)).toBe('duplicate');
      expect(await bench.used('dedup_marks')).toBe(6);
      expect((await bench.backend.dedup.stats(10)).exact).toBe(true);
    });

    it('drops the oldest mark of all users if no user is over the guarantee, and all are given back', async () => {
      const history = await opened(5, 5);
      for (const userId of ['carol', 'alice', 'bob', 'erin', 'dave', 'frank']) {
        await kindOf(history, userId, 'm');
        await bench.advance(10);
      }
      for (const userId of ['alice', 'bob', 'erin', 'dave', 'frank'])
        expect([userId, await kindOf(history, userId, 'm')]).toEqual([userId, 'duplicate']);
      expect(await kindOf(history, 'carol', 'm')).toBe('retained');
      await bench.advance(10 * DEDUP_TTL_MS);
      await bench.backend.dedup.stats(10);
      expect(await bench.used('dedup_marks')).toBe(0);
    });
  });
}

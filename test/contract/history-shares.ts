/** Defines the contract tests of HistoryStore about the share `history_bytes`. Every backend must pass them. */
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import type { HistoryBounds } from './kit/bench.ts';
import { newMessage } from './kit/history-model.ts';
import type { SharesBench } from './command-shares.ts';

const EVERY = { afterTime: null, beforeTime: null, kinds: null };
const ALL = { first: 1000, after: null };
/** The bytes of each payload. They are many, so that it does not matter what a backend counts for the rest of a row. */
const PAYLOAD = 10_000;
const RETENTION_MS = 1_000;

export type MakeHistorySharesBench = (
  bounds: ReturnType<typeof shareBounds>,
  limits: HistoryBounds,
) => Promise<SharesBench>;

/** Defines the tests of the share `history_bytes`. `runs` is the number of runs of the random test. */
export function historyShares(name: string, make: MakeHistorySharesBench, { runs }: { readonly runs: number }): void {
  describe(`the share of history on ${name}`, () => {
    const open: SharesBench[] = [];
    afterEach(async () => {
      for (const bench of open.splice(0)) await bench.close();
    });
    async function opened(guarantee: number, total: number, limits: HistoryBounds = {}) {
      const bounds = shareBounds({ history_bytes: { guarantee: guarantee * PAYLOAD, total: total * PAYLOAD } });
      const bench = await make(bounds, { retentionMs: RETENTION_MS, ...limits });
      open.push(bench);
      const { history } = bench.backend;
      const retain = (userId: string, id: string, suffix = 'x', bytes = PAYLOAD) =>
        history.retain(newMessage({ id, suffix, userId, commandId: 'c1', payload: toJson('x'.repeat(bytes)) }));
      const read = async (userId: string, suffix: string) => {
        const scan = await history.messages(userId, suffix, EVERY, ALL);
        return { ids: scan?.rows.map(({ row }) => row.id) ?? [], gaps: scan?.gaps.map(({ reason }) => reason) ?? [] };
      };
      return { bench, retain, read };
    }

    it('keeps the rows of others while one user floods one stream, and says what is missing', async () => {
      const { bench, retain, read } = await opened(4, 10);
      for (const userId of ['alice', 'bob']) for (const id of ['1', '2']) await retain(userId, id);
      for (let i = 0; i < 30; i++) await retain('mallory', `m${i}`);
      for (const userId of ['alice', 'bob']) expect(await read(userId, 'x')).toEqual({ ids: ['1', '2'], gaps: [] });
      const { ids, gaps } = await read('mallory', 'x');
      expect(gaps).toEqual(['evicted']);
      expect(ids.length).toBeGreaterThan(2);
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, i) => `m${30 - ids.length + i}`));
      expect((await bench.backend.history.ofCommand('mallory', 'c1', ALL)).gaps).toHaveLength(1);
      expect((await bench.backend.history.ofCommand('alice', 'c1', ALL)).gaps).toEqual([]);
      expect(await bench.used('history_bytes')).toBeLessThanOrEqual(11.5 * PAYLOAD);
    });

    it('keeps the rows of others while one user floods many streams', async () => {
      const { retain, read } = await opened(4, 10);
      for (const userId of ['alice', 'bob']) for (const id of ['1', '2']) await retain(userId, id);
      for (let i = 0; i < 50; i++) await retain('mallory', `m${i}`, `s${i % 7}`);
      for (const userId of ['alice', 'bob']) expect(await read(userId, 'x')).toEqual({ ids: ['1', '2'], gaps: [] });
      expect((await read('mallory', 's0')).ids).toEqual(['m49']);
    });

    it('drops the rows written longest ago if no user is over their guarantee', async () => {
      const { bench, retain, read } = await opened(4, 5);
      for (let i = 0; i < 10; i++) {
        await retain(`user-${i}`, 'm');
        await bench.advance(1);
      }
      expect((await read('user-0', 'x')).ids).toEqual([]);
      expect((await read('user-9', 'x')).ids).toEqual(['m']);
      expect(await bench.used('history_bytes')).toBeLessThanOrEqual(6.5 * PAYLOAD);
    });

    it('is empty once every row has expired, after any sequence of messages', async () => {
      const act = fc.record({
        userId: fc.constantFrom('a', 'b', 'c'),
        suffix: fc.constantFrom('x', 'y', 'links'),
        bytes: fc.constantFrom(10, PAYLOAD / 2, PAYLOAD),
        ms: fc.constantFrom(0, 0, 1, RETENTION_MS / 4),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(act, { minLength: 20, maxLength: 60 }), async (acts) => {
          const { bench, retain } = await opened(2, 6, { streamMessages: 5, streamsPerUser: 2 });
          for (const [i, { userId, suffix, bytes, ms }] of acts.entries()) {
            await retain(userId, `m${i}`, suffix, bytes);
            await bench.advance(ms);
          }
          await bench.advance(RETENTION_MS);
          for (const userId of ['a', 'b', 'c']) await bench.backend.history.streams(userId, null, ALL);
          expect(await bench.used('history_bytes')).toBe(0);
        }),
        { numRuns: runs },
      );
    });
  });
}

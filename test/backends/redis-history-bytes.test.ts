/**
 * Tests that the count of bytes of history over Redis equals the size of the stored blocks, however blocks were
 * removed.
 */
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { listOf } from '../../src/backends/redis/replies.ts';
import { toJson } from '../../src/core/json.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const RETENTION_MS = 10_000;

/** Returns the bytes of all stored blocks. */
async function storedBytes({ store }: RedisBench): Promise<number> {
  const [names] = await store.read([['KEYS', store.key(0, 'stream', '*')]]);
  const streams = [names].flat().map(String);
  const replies = await store.read(streams.map((name) => ['XRANGE', name, '-', '+']));
  const blocks = replies.flatMap(listOf).map((entry) => String(listOf(listOf(entry)[1])[1]));
  return blocks.reduce((sum, block) => sum + Buffer.byteLength(block), 0);
}

describe('the bytes of history over Redis', () => {
  const open: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });

  it('are those of the stored blocks, after any sequence of messages', async () => {
    const write = fc.record({
      userId: fc.constantFrom('a', 'b'),
      suffix: fc.constantFrom('x', 'y', 'z'),
      rows: fc.constantFrom(1, 1, 2, 5),
      bytes: fc.constantFrom(2, 300, 2_000),
      ms: fc.constantFrom(0, 1, RETENTION_MS / 8, RETENTION_MS / 2, RETENTION_MS),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(write, { minLength: 20, maxLength: 60, size: 'max' }), async (writes) => {
        const bounds = shareBounds({ history_bytes: { guarantee: 5_000, total: 15_000 } });
        const limits = { retentionMs: RETENTION_MS, streamMessages: 6, streamsPerUser: 2 };
        const bench = await redisBench({ partitions: 1, bounds, ...limits });
        open.push(bench);
        const { history, sharesInUse } = bench.backend;
        for (const { rows, bytes, ms, ...ids } of writes) {
          const payload = toJson('x'.repeat(bytes));
          await Promise.all(Array.from({ length: rows }, () => history.retain(newMessage({ ...ids, payload }))));
          await bench.advance(ms);
          const counted = (await sharesInUse?.())?.get('history_bytes');
          expect(counted).toBe(await storedBytes(bench));
          // A call may append its rows before it removes older ones.
          expect(counted).toBeLessThanOrEqual(15_000 + 5 * 2_500);
        }
      }),
      { numRuns: 6 },
    );
  });

  it('are given back if the heads of the streams expired while no node ran', async () => {
    const bench = await redisBench({ partitions: 1, retentionMs: RETENTION_MS });
    open.push(bench);
    const { history, sharesInUse } = bench.backend;
    for (const suffix of ['x', 'y']) await history.retain(newMessage({ suffix }));
    await bench.store.read([['UNLINK', bench.store.key(0, 'streamheads', bench.store.hash('alice'))]]);
    await bench.advance(RETENTION_MS);
    await history.users({ first: 10, after: null });
    expect((await sharesInUse?.())?.get('history_bytes')).toBe(0);
  });
});

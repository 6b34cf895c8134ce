/**
 * Tests that the index of commands' messages over Redis names exactly the stored messages, however messages were
 * removed, and that its spans suit the retention.
 */
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeBlocks } from '../../src/backends/redis/history-rows.ts';
import { listOf } from '../../src/backends/redis/replies.ts';
import { toJson } from '../../src/core/json.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const RETENTION_MS = 80_000;
const HOUR = 3600_000;

async function keysOf({ store }: RedisBench, kind: 'stream' | 'cmdrows' | 'cmdmore'): Promise<readonly string[]> {
  return listOf((await store.read([['KEYS', store.key(0, kind, '*')]]))[0]).map(String);
}

/** Returns the time and `seq` of each stored message of a command. */
async function storedPlaces(bench: RedisBench): Promise<readonly string[]> {
  const replies = await bench.store.read((await keysOf(bench, 'stream')).map((name) => ['XRANGE', name, '-', '+']));
  const blocks = replies.flatMap((reply) => decodeBlocks({ userId: 'any', suffix: 'any' }, reply));
  const messages = blocks.flatMap(({ rows }) => rows.map(({ message }) => message));
  return messages.filter(({ commandId }) => commandId !== null).map(({ at, seq }) => `${at} ${seq}`);
}

/** Returns the time and `seq` of each place in the index. */
async function indexedPlaces(bench: RedisBench): Promise<readonly string[]> {
  const rows = await bench.store.read((await keysOf(bench, 'cmdrows')).map((name) => ['HVALS', name]));
  const more = await bench.store.read((await keysOf(bench, 'cmdmore')).map((name) => ['ZRANGE', name, 0, -1]));
  const few = rows.flatMap(listOf).flatMap((places) => {
    const parts = String(places).split('\0').slice(0, -1);
    return parts.flatMap((at, i) => (i % 3 === 0 ? [`${at} ${parts[i + 2]}`] : []));
  });
  const further = more.flatMap(listOf).map((place) => {
    const [at, , seq] = String(place).split('\0');
    return `${Number(at)} ${Number(seq)}`;
  });
  return [...few, ...further];
}

describe('the index of commands over Redis', () => {
  const open: RedisBench[] = [];
  const bench = async (options: Parameters<typeof redisBench>[0]): Promise<RedisBench> => {
    const opened = await redisBench({ partitions: 1, ...options });
    open.push(opened);
    return opened;
  };
  afterEach(async () => {
    for (const opened of open.splice(0).reverse()) await opened.close();
  });

  it('names exactly the stored messages, after any sequence of messages', async () => {
    const write = fc.record({
      userId: fc.constantFrom('a', 'b'),
      suffix: fc.constantFrom('x', 'y', 'z'),
      commandId: fc.constantFrom('c1', 'c2', 'c3', null),
      rows: fc.constantFrom(1, 1, 2, 12),
      bytes: fc.constantFrom(2, 300, 2_000),
      ms: fc.constantFrom(0, 1, 10),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(write, { minLength: 20, maxLength: 60, size: 'max' }), async (writes) => {
        const bounds = shareBounds({ history_bytes: { guarantee: 15_000, total: 45_000 } });
        const opened = await bench({ bounds, retentionMs: RETENTION_MS, streamMessages: 32, streamsPerUser: 2 });
        for (const { rows, bytes, ms, ...ids } of writes) {
          const payload = toJson('x'.repeat(bytes));
          const message = newMessage({ ...ids, payload });
          await Promise.all(Array.from({ length: rows }, () => opened.backend.history.retain(message)));
          await opened.advance(ms);
          expect((await indexedPlaces(opened)).toSorted()).toEqual((await storedPlaces(opened)).toSorted());
        }
      }),
      { numRuns: 8 },
    );
  });

  it('names exactly the stored messages after many streams were trimmed at once', async () => {
    const opened = await bench({ retentionMs: RETENTION_MS, streamMessages: 256 });
    const suffixes = ['a', 'b', 'c', 'd', 'e', 'f'];
    const write = (count: number) =>
      Promise.all(
        suffixes.flatMap((suffix) =>
          Array.from({ length: count }, (_, i) =>
            opened.backend.history.retain(newMessage({ suffix, commandId: `${suffix}${i}` })),
          ),
        ),
      );
    for (const count of [250, 250, 250, 8, 8, 8]) {
      await write(count);
      await opened.quiet();
      await opened.advance(1);
    }
    expect((await indexedPlaces(opened)).toSorted()).toEqual((await storedPlaces(opened)).toSorted());
    expect(await opened.audit()).toEqual([]);
  });

  it('is removed soon after the messages are too old', async () => {
    const opened = await bench({ retentionMs: RETENTION_MS });
    const { history } = opened.backend;
    await history.retain(newMessage({ suffix: 'gone', commandId: 'c1' }));
    for (let i = 0; i < 10; i++) {
      await opened.advance(RETENTION_MS / 8);
      await history.retain(newMessage({ suffix: 'stays', commandId: 'c2' }));
    }
    // The spans of the last eight messages, and the one that is due with the next span.
    expect(await keysOf(opened, 'cmdrows')).toHaveLength(9);
    await opened.advance(2 * RETENTION_MS);
    await history.users({ first: 10, after: null });
    expect(await keysOf(opened, 'cmdrows')).toEqual([]);
  });

  it('finds the messages of a command after RETENTION_MS was raised', async () => {
    const before = await bench({ retentionMs: 8 * HOUR });
    const long = await bench({ beside: before, retentionMs: 96 * HOUR });
    const found = async ({ backend }: RedisBench): Promise<readonly (string | null)[]> => {
      const page = await backend.history.ofCommand('alice', 'c1', { first: 50, after: null });
      return page.rows.map(({ row }) => row.id);
    };
    await before.backend.history.retain(newMessage({ id: 'short', commandId: 'c1' }));
    await before.advance(HOUR / 2);
    // This message is in the span of the first, whose time of removal is moved.
    await long.backend.history.retain(newMessage({ id: 'long', commandId: 'c1' }));
    await before.advance(70 * HOUR);
    await long.backend.history.retain(newMessage({ id: 'last', commandId: 'c1' }));
    expect(await found(long)).toEqual(['short', 'long', 'last']);
  });
});

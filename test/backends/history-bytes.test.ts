/** Tests the bounds on bytes of the history in memory, in all and for each user. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryHistory, type TableLimits } from '../../src/backends/memory/history.ts';
import { ROW_BYTES } from '../../src/backends/memory/history-row.ts';
import type { Message } from '../../src/core/history/message.ts';
import { toJson } from '../../src/core/json.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { FakeClock } from '../kit/clock.ts';

const EVERY = { afterTime: null, beforeTime: null, kinds: null };
const ALL = { first: 1000, after: null };
const ROOM_FOR_FIVE = { bytes: 5 * ROW_BYTES, retentionMs: 1000 };

function opened(limits: Partial<TableLimits>) {
  const clock = new FakeClock();
  const history = createMemoryHistory({ clock, limits });
  const retain = (id: string, suffix: string, userId = 'alice'): Message =>
    history.retain(newMessage({ id, suffix, userId, commandId: 'c1' }));
  const idsOf = async (suffix: string, userId = 'alice'): Promise<string[] | null> => {
    const scan = await history.messages(userId, suffix, EVERY, ALL);
    return scan && scan.rows.map(({ row }) => row.id);
  };
  return { clock, history, retain, idsOf };
}

describe('the bound on bytes of the memory history', () => {
  it('drops the oldest message of all streams first', async () => {
    const { history, retain, idsOf } = opened(ROOM_FOR_FIVE);
    retain('m1', 'x');
    retain('m2', 'y', 'bob');
    for (const id of ['m3', 'm4', 'm5']) retain(id, 'x');
    expect(history.totals()).toMatchObject({ messages: 5, evictedMessages: 0 });
    retain('m6', 'y', 'bob');
    expect([await idsOf('x'), await idsOf('y', 'bob')]).toEqual([
      ['m3', 'm4', 'm5'],
      ['m2', 'm6'],
    ]);
    retain('m7', 'x');
    expect([await idsOf('x'), await idsOf('y', 'bob')]).toEqual([['m3', 'm4', 'm5', 'm7'], ['m6']]);
    expect(history.totals()).toMatchObject({ messages: 5, evictedMessages: 2, evictedStreams: 0 });
  });

  it('reports a gap in the answers that could have contained the dropped message, and in no other', async () => {
    const { history, retain } = opened(ROOM_FOR_FIVE);
    retain('m1', 'x');
    retain('m2', 'x2');
    for (const id of ['m3', 'm4', 'm5']) retain(id, 'y', 'bob');
    retain('m6', 'x');
    const gapsOf = async (suffix: string, userId: string) =>
      (await history.messages(userId, suffix, EVERY, ALL))?.gaps.map(({ source, reason }) => [source, reason]);
    expect(await gapsOf('x', 'alice')).toEqual([['messages', 'evicted']]);
    expect(await gapsOf('x2', 'alice')).toEqual([]);
    expect(await gapsOf('y', 'bob')).toEqual([]);
    const command = async (userId: string) => (await history.ofCommand(userId, 'c1', ALL)).gaps.length;
    expect([await command('alice'), await command('bob')]).toEqual([1, 0]);
    expect((await history.streams('alice', null, ALL)).gaps).toEqual([]);
  });

  it('reports which stream was dropped completely, until its messages would have expired', async () => {
    const { clock, history, retain, idsOf } = opened(ROOM_FOR_FIVE);
    retain('m1', 'x');
    retain('m2', 'x2');
    await clock.advance(400);
    for (const id of ['m3', 'm4', 'm5', 'm6', 'm7']) retain(id, 'y', 'bob');
    expect(history.totals()).toMatchObject({ evictedMessages: 2, evictedStreams: 2 });
    const gaps = async () => [
      (await history.streams('alice', null, ALL)).gaps.length,
      (await history.ofUsers(['alice'], 1))[0]?.gaps.length,
      (await history.ofUsers(['bob'], 1))[0]?.gaps.length,
      (await history.users(ALL)).gaps.length,
      (await history.ofCommand('alice', 'c1', ALL)).gaps.length,
    ];
    expect(await gaps()).toEqual([1, 1, 0, 1, 1]);
    expect(await idsOf('x')).toEqual([]);
    expect(await idsOf('x', 'bob')).toBeNull();
    await clock.advance(599);
    expect(await gaps()).toEqual([1, 1, 0, 1, 1]);
    await clock.advance(1);
    expect(await gaps()).toEqual([0, 0, 0, 0, 0]);
    expect(await idsOf('x')).toBeNull();
  });

  it('keeps the gap of a stream that is created again', async () => {
    const { history, retain } = opened(ROOM_FOR_FIVE);
    retain('m1', 'x');
    for (const id of ['m2', 'm3', 'm4', 'm5', 'm6']) retain(id, 'y', 'bob');
    retain('m7', 'x');
    const scan = await history.messages('alice', 'x', EVERY, ALL);
    expect(scan?.rows.map(({ row }) => row.id)).toEqual(['m7']);
    expect(scan?.gaps).toMatchObject([{ reason: 'evicted' }]);
  });

  it('keeps the newest message even when it alone is too large', async () => {
    const { history, idsOf } = opened({ bytes: 10 });
    history.retain(newMessage({ id: 'm1', suffix: 'x', payload: toJson('x'.repeat(1000)) }));
    expect(await idsOf('x')).toEqual(['m1']);
    history.retain(newMessage({ id: 'm2', suffix: 'y', payload: toJson('x'.repeat(1000)) }));
    expect([await idsOf('y'), history.totals().messages]).toEqual([['m2'], 1]);
  });

  it('counts a payload by its UTF-8 and the rest by a fixed figure, and forgets both with the message', async () => {
    const { clock, history } = opened({ retentionMs: 10 });
    history.retain(newMessage({ payload: toJson('é\u{1f600}') }));
    expect(history.totals().bytes).toBe(ROW_BYTES + 8);
    await clock.advance(10);
    await history.streams('alice', null, ALL);
    expect(history.totals()).toMatchObject({ messages: 0, bytes: 0 });
  });

  it('holds for any sequence of messages: the counted bytes are those of the shown messages', async () => {
    const act = fc.record({
      userId: fc.constantFrom('a', 'b', 'c'),
      suffix: fc.constantFrom('x', 'y', 'z'),
      size: fc.constantFrom(0, 100, ROW_BYTES, 3 * ROW_BYTES),
      commandId: fc.constantFrom('c1', 'c2', null),
      ms: fc.constantFrom(0, 1, 40),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 60 }), async (acts) => {
        const { clock, history } = opened({
          bytes: 8 * ROW_BYTES,
          retentionMs: 100,
          streamMessages: 4,
          streamsPerUser: 2,
        });
        let newest: Message[] = [];
        for (const { size, ms, ...ids } of acts) {
          newest = [...newest, history.retain(newMessage({ ...ids, payload: toJson('x'.repeat(size)) }))];
          const shown: Message[] = [];
          for (const userId of ['a', 'b', 'c']) {
            for (const suffix of ['x', 'y', 'z']) {
              const scan = await history.messages(userId, suffix, EVERY, ALL);
              shown.push(...(scan?.rows ?? []).map(({ row }) => row));
            }
          }
          const { messages, bytes } = history.totals();
          expect(shown).toHaveLength(messages);
          expect(shown.reduce((sum, row) => sum + ROW_BYTES + row.payloadBytes, 0)).toBe(bytes);
          expect(bytes <= 8 * ROW_BYTES || messages === 1).toBe(true);
          expect(shown).toContain(newest.at(-1));
          await clock.advance(ms);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('the share of each user in the memory history', () => {
  const shares = () => createShares({ history_bytes: { guarantee: 2 * ROW_BYTES, total: 6 * ROW_BYTES } });
  const limits = { bytes: 6 * ROW_BYTES, retentionMs: 1000 };

  it('keeps the rows of others while one user floods, over however many streams', async () => {
    const held = shares();
    const history = createMemoryHistory({ clock: new FakeClock(), limits, shares: held });
    const retain = (userId: string, id: string, suffix = 'x') => history.retain(newMessage({ id, suffix, userId }));
    for (const userId of ['alice', 'bob']) for (const id of ['1', '2']) retain(userId, id);
    for (let i = 0; i < 50; i++) retain('mallory', `m${i}`, `s${i % 7}`);
    const idsOf = async (userId: string, suffix: string) =>
      (await history.messages(userId, suffix, EVERY, ALL))?.rows.map(({ row }) => row.id);
    expect([await idsOf('alice', 'x'), await idsOf('bob', 'x')]).toEqual([
      ['1', '2'],
      ['1', '2'],
    ]);
    // Of the messages that flooded the history, only the newest are left.
    expect([await idsOf('mallory', 's0'), await idsOf('mallory', 's6')]).toEqual([['m49'], ['m48']]);
    const gaps = async (userId: string) => (await history.streams(userId, null, ALL)).gaps.length;
    expect([await gaps('alice'), await gaps('bob'), await gaps('mallory')]).toEqual([0, 0, 1]);
    expect([held.used('history_bytes'), history.totals().bytes]).toEqual([6 * ROW_BYTES, 6 * ROW_BYTES]);
  });

  it('drops nothing of a user within their guarantee, and counts exactly, for any sequence of messages', async () => {
    const guarantee = 3 * ROW_BYTES;
    const act = fc.record({
      userId: fc.constantFrom('a', 'b', 'c'),
      suffix: fc.constantFrom('x', 'y', 'z'),
      size: fc.constantFrom(0, ROW_BYTES),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 80, size: 'max' }), async (acts) => {
        const held = createShares({ history_bytes: { guarantee, total: 3 * guarantee } });
        const clock = new FakeClock();
        const bounds = { bytes: 3 * guarantee, retentionMs: 100, streamMessages: 5, streamsPerUser: 2 };
        const history = createMemoryHistory({ clock, limits: bounds, shares: held });
        const bytesOf = (userId: string): number => held.of(userId).held('history_bytes');
        for (const { size, ...ids } of acts) {
          const others = ['a', 'b', 'c'].filter((userId) => userId !== ids.userId && bytesOf(userId) <= guarantee);
          const before = others.map(bytesOf);
          history.retain(newMessage({ ...ids, payload: toJson('x'.repeat(size)) }));
          expect(others.map(bytesOf)).toEqual(before);
          expect(held.used('history_bytes')).toBe(history.totals().bytes);
          expect(history.totals().bytes).toBeLessThanOrEqual(3 * guarantee);
        }
        await clock.advance(100);
        await history.streams('a', null, ALL);
        expect(held.used('history_bytes')).toBe(0);
      }),
      { numRuns: 100 },
    );
  });
});

describe('time in the memory history', () => {
  it('does not advance while the clock is behind it, so the orders by time and by sequence agree', async () => {
    let now = 1_000_000;
    const clock = { now: () => now, monotonic: () => now, after: () => () => {}, every: () => () => {} };
    const history = createMemoryHistory({ clock });
    const at = (id: string, time: number): number => {
      now = time;
      return history.retain(newMessage({ id, commandId: 'c1' })).at;
    };
    expect([at('m1', 1_000_000), at('m2', 900_000), at('m3', 1_000_001)]).toEqual([1_000_000, 1_000_000, 1_000_001]);
    const { rows } = await history.ofCommand('alice', 'c1', ALL);
    expect(rows.map(({ row }) => row.id)).toEqual(['m1', 'm2', 'm3']);
  });
});

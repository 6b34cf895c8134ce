/** Tests history over Redis with two processes: order, pages, duplicates and payloads. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KINDS, tagsOf, type KeyKind } from '../../src/backends/redis/keys.ts';
import { createRedisHistory } from '../../src/backends/redis/history.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { Message, NewMessage, IngestedMessage, MessagePage } from '../../src/core/history/message.ts';
import { fromJson, toJson } from '../../src/core/json.ts';
import { PAGE_READ_BYTES, STREAMS_PER_USER } from '../../src/core/limits.ts';
import type { Position, Scan } from '../../src/core/page.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { FakeClock } from '../kit/clock.ts';

const EVERY = { afterTime: null, beforeTime: null, kinds: null };
const ALL = { first: 1000, after: null };
const HOUR = 3600_000;

function ingested(id: string, over: Partial<IngestedMessage> = {}): IngestedMessage {
  return { ...newMessage({ suffix: 'sites/a/events' }), clientId: 'tab', id, ...over };
}

function values<T>(scan: Scan<T> | null): T[] {
  return (scan?.rows ?? []).map(({ row }) => row);
}

describe('history over Redis', () => {
  let bench: RedisBench;
  let beside: RedisBench;
  beforeEach(async () => {
    bench = await redisBench({ retentionMs: HOUR, streamMessages: 50 });
    beside = await redisBench({ beside: bench, retentionMs: HOUR, streamMessages: 50 });
  });
  afterEach(async () => {
    await beside.close();
    await bench.close();
  });

  const retain = async (over: Partial<NewMessage>): Promise<Message> => bench.backend.history.retain(newMessage(over));
  const roundTrips = async (run: () => unknown): Promise<number> => {
    const before = bench.store.roundTrips;
    await run();
    return bench.store.roundTrips - before;
  };

  it('keeps one order of a stream for the writers of two processes', async () => {
    const both = [bench.backend.history, beside.backend.history];
    const kept = await Promise.all(
      Array.from({ length: 40 }, (_, i) => both[i % 2]?.retain(newMessage({ id: `m${i}`, payload: toJson(i) }))),
    );
    expect(new Set(kept.map((message) => message?.seq)).size).toBe(40);
    const [here, there] = await Promise.all(both.map((one) => one.messages('alice', 'clients/tab', EVERY, ALL)));
    expect(values(here ?? null)).toEqual(kept.toSorted((a, b) => (a?.seq ?? 0) - (b?.seq ?? 0)));
    expect(there).toEqual(here);
  });

  it('sends nothing more of a user until a call that may open a stream is answered, and keeps the order', async () => {
    const held = Promise.withResolvers<void>();
    let calls = 0;
    const transact: Store['transact'] = async (...call) => {
      const reply = bench.store.transact(...call);
      if (++calls === 1) await held.promise;
      return reply;
    };
    const history = createRedisHistory({ ...bench.parts, store: { ...bench.store, transact } });
    const kept = [history.retain(newMessage({ id: 'm1' }))];
    await expect.poll(() => calls).toBe(1);
    for (const id of ['m2', 'm3']) {
      kept.push(history.retain(newMessage({ id })));
      for (let turn = 0; turn < 10; turn++) await nextTurn();
    }
    await history.retain(newMessage({ id: 'other', userId: 'bob' }));
    const before = calls;
    held.resolve();
    const numbers = (await Promise.all(kept)).map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    // One call opens the stream, and one has the two messages that waited.
    expect(calls - before).toBe(2);
  });

  it('stores at most a thirty-second more messages than it shows', async () => {
    await using stack = new AsyncDisposableStack();
    const full = await redisBench({ partitions: 1, retentionMs: HOUR, streamMessages: 320 });
    stack.defer(() => full.close());
    const { history } = full.backend;
    const lengths: number[] = [];
    for (let i = 0; i < 500; i++) {
      await history.retain(newMessage({ commandId: 'c1' }));
      // Each message is retained alone, so each is a block of its own.
      const [length] = await full.store.read([
        ['XLEN', full.store.key(0, 'stream', full.store.hash('alice', 'clients/tab'))],
      ]);
      lengths.push(Number(length));
    }
    expect(Math.max(...lengths)).toBe(320 + 320 / 32);
    expect(Math.min(...lengths.slice(320))).toBe(320);
    const shown = values(await history.messages('alice', 'clients/tab', EVERY, ALL));
    expect(shown).toHaveLength(320);
  });

  it('ends a page early after PAGE_READ_BYTES of payloads, and the next pages bring the rest in order', async () => {
    await using stack = new AsyncDisposableStack();
    const large = await redisBench({ retentionMs: HOUR, streamMessages: 1_000 });
    stack.defer(() => large.close());
    const { history } = large.backend;
    const payload = toJson('x'.repeat(20_000));
    const row = (i: number) => newMessage({ id: `m${i}`, commandId: 'c1', payload });
    const kept = await Promise.all(Array.from({ length: 400 }, (_, i) => history.retain(row(i))));
    const ids = kept.toSorted((a, b) => a.seq - b.seq).map(({ id }) => id);
    const fits = Math.ceil(PAGE_READ_BYTES / 20_002);
    for (const order of ['oldest_first', 'newest_first'] as const) {
      const pages: Message[][] = [];
      for (const list of [
        (page: MessagePage) => history.messages('alice', 'clients/tab', EVERY, page),
        (page: MessagePage) => history.ofCommand('alice', 'c1', page),
      ]) {
        pages.length = 0;
        let after: Position | null = null;
        do {
          const scan: Scan<Message> | null = await list({ ...ALL, after, order });
          pages.push(values(scan));
          after = scan?.next ?? null;
        } while (after !== null);
        expect(pages.map(({ length }) => length)).toEqual([fits, 400 - fits]);
        expect(pages.flat().map(({ id }) => id)).toEqual(order === 'oldest_first' ? ids : ids.toReversed());
      }
    }
  });

  it('retains one message once, from whichever process it comes, and counts every sighting', async () => {
    const results = await Promise.all(
      [bench, beside, bench, beside].map(({ backend }) => backend.history.ingest(ingested('m1'))),
    );
    expect(results.map(({ kind }) => kind).sort()).toEqual(['duplicate', 'duplicate', 'duplicate', 'retained']);
    expect(await beside.backend.dedup.stats(60)).toMatchObject({ seen: 4, unique: 1, duplicates: 3 });
    expect(values(await bench.backend.history.messages('alice', 'sites/a/events', EVERY, ALL))).toHaveLength(1);
  });

  it('counts and retains nothing again when Redis runs a request twice', async () => {
    const transact: Store['transact'] = async (...call) => {
      await bench.store.transact(...call);
      return bench.store.transact(...call);
    };
    const twice = createRedisHistory({ ...bench.parts, store: { ...bench.store, transact } });
    const events = async () => values(await bench.backend.history.messages('alice', 'sites/a/events', EVERY, ALL));
    const first = await twice.ingest(ingested('m1'));
    expect(first).toEqual({ kind: 'retained', message: (await events())[0] });
    expect(await twice.ingest(ingested('m1'))).toEqual({ kind: 'duplicate', messageId: 'm1' });
    expect(await bench.backend.dedup.stats(60)).toMatchObject({ seen: 2, unique: 1, duplicates: 1 });
    expect(await events()).toHaveLength(1);
    const retained = await twice.retain(ingested('m1'));
    expect((await events()).at(-1)).toEqual(retained);
    expect(await events()).toHaveLength(2);
  });

  it('keeps any payload byte for byte, and a spilled one by its reference', async () => {
    const spill = { name: null, bytes: 70_000, sha256: 'x'.repeat(43), expiresAt: bench.now() + HOUR };
    const given = [
      newMessage({ id: 'm1', payload: toJson({ a: ' \u0000\\"é\u{1f600}', b: [[], {}] }) }),
      newMessage({ id: 'm2', spill, error: { code: 'x', message: 'é' } }),
      newMessage({ id: 'm3', payload: toJson(''), clientId: null, instanceId: null }),
    ];
    for (const message of given) await bench.backend.history.retain(message);
    const read = values(await beside.backend.history.messages('alice', 'clients/tab', EVERY, ALL));
    expect(read).toMatchObject(given);
    expect(read.map(({ payloadBytes }) => payloadBytes)).toEqual([
      Buffer.byteLength(given[0]?.payload ?? ''),
      70_000,
      2,
    ]);
  });

  it('lists the streams of many users in as many round trips as those of one user', async () => {
    const users = Array.from({ length: 60 }, (_, i) => `user-${i}`);
    await Promise.all(users.flatMap((userId) => ['a', 'b'].map((suffix) => retain({ userId, suffix }))));
    const [one = ''] = users;
    const partitions = new Set(users.map((userId) => bench.store.partitionOfUser(userId)));
    expect(partitions.size).toBe(2);
    const { history } = bench.backend;
    expect(await roundTrips(() => history.ofUsers([one], 100))).toBe(2);
    expect(await roundTrips(() => history.ofUsers(users, 100))).toBe(2 * partitions.size);
    expect(await roundTrips(() => history.messages(one, 'a', EVERY, ALL))).toBe(2);
    expect(await roundTrips(() => history.users(ALL))).toBe(partitions.size);
    const found = await history.ofUsers(users, 1);
    expect(
      found.map(({ total, rows }) => [total, rows.map((row) => [row.userId, row.suffix, row.messageCount])]),
    ).toEqual(users.map((userId) => [2, [[userId, 'a', 1]]]));
  });

  it('lists the users of all partitions in one byte order, page by page', async () => {
    const users = ['zoe', 'Zoe', 'é', 'a\u{1f600}', 'a\u{fffd}', 'a', 'ab', 'a b', 'b', ...'cdefgh'];
    for (const userId of users) await retain({ userId });
    const found: string[] = [];
    let after: Position | null = null;
    do {
      const scan: Scan<{ userId: string }> = await bench.backend.history.users({ first: 4, after });
      found.push(...values(scan).map(({ userId }) => userId));
      after = scan.next;
    } while (after !== null);
    expect(found).toEqual(users.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  });

  it('keeps the order of time and sequence when the clock of Redis goes backwards', async () => {
    const first = await retain({ id: 'm1' });
    const behind = await redisBench({ beside: { ...bench, clock: new FakeClock(first.at - 1000) }, retentionMs: HOUR });
    const second = await behind.backend.history.retain(newMessage({ id: 'm2' }));
    await behind.close();
    expect([second.at, second.seq]).toEqual([first.at, first.seq + 1]);
  });

  it('reads the streams of a command only, past rows that were dropped from their stream', async () => {
    for (let i = 0; i < 60; i++) await retain({ id: `m${i}`, commandId: 'c1' });
    await retain({ id: 'other', commandId: 'c1', suffix: 'sites/a/events' });
    const all = values(await bench.backend.history.ofCommand('alice', 'c1', ALL));
    expect(all.map(({ id }) => id)).toEqual([...Array.from({ length: 50 }, (_, i) => `m${i + 10}`), 'other']);
    const short = await bench.backend.history.ofCommand('alice', 'c1', { first: 3, after: null });
    expect(values(short).map(({ id }) => id)).toEqual(['m10', 'm11', 'm12']);
    const next = await bench.backend.history.ofCommand('alice', 'c1', { first: 48, after: short.next });
    expect([values(next).at(-1)?.id, next.next]).toEqual(['other', null]);
    expect(await bench.backend.history.ofCommand('alice', 'c2', ALL)).toEqual({ rows: [], next: null, gaps: [] });
  });

  it('writes the rows of a call as one block, which is removed once all of its rows are beyond the bound', async () => {
    const { history } = bench.backend;
    const stream = bench.store.key(
      bench.store.partitionOfUser('alice'),
      'stream',
      bench.store.hash('alice', 'clients/tab'),
    );
    for (let turn = 0; turn < 10; turn++)
      await Promise.all(Array.from({ length: 20 }, (_, i) => retain({ id: `m${20 * turn + i}`, commandId: 'c1' })));
    const newest = Array.from({ length: 50 }, (_, i) => `m${150 + i}`);
    expect(values(await history.messages('alice', 'clients/tab', EVERY, ALL)).map(({ id }) => id)).toEqual(newest);
    expect(values(await history.ofCommand('alice', 'c1', ALL)).map(({ id }) => id)).toEqual(newest);
    expect(values(await history.streams('alice', null, ALL))).toMatchObject([{ messageCount: 50 }]);
    const [entries] = await bench.store.read([['XRANGE', stream, '-', '+']]);
    const rows = Array.isArray(entries) ? entries.map((entry) => entry[1][0]) : [];
    // The oldest block has 20 rows, of which only ten are within the limit of the stream.
    expect(rows).toEqual(['20', '20', '20']);
  });

  it('samples the newest of all streams and partitions, as they are stored', async () => {
    for (let i = 0; i < 30; i++) {
      await retain({
        id: `m${i}`,
        userId: `user-${i % 7}`,
        suffix: `s${i % 3}`,
        payload: i % 2 ? toJson({ i }) : null,
      });
      await bench.advance(1);
    }
    const ids = async (bounds: { messages: number; bytes?: number; of?: 'stored' | 'payloads' }) => {
      const { messages, bytes = 1024 * 1024, of = 'stored' } = bounds;
      const sample = await beside.backend.history.sample(null, { messages, bytes, of });
      return { ids: sample?.rows.map(({ message }) => message.id), cut: sample?.cut };
    };
    const newest = Array.from({ length: 30 }, (_, i) => `m${29 - i}`);
    expect(await ids({ messages: 100 })).toEqual({ ids: newest, cut: false });
    expect(await ids({ messages: 8 })).toEqual({ ids: newest.slice(0, 8), cut: true });
    expect(await ids({ messages: 100, bytes: 1 })).toEqual({ ids: ['m29'], cut: true });
    expect(await ids({ messages: 3, of: 'payloads' })).toEqual({ ids: ['m29', 'm27', 'm25'], cut: true });
    const own = await bench.backend.history.sample(
      { userId: 'user-1', suffix: 's2' },
      { messages: 1, bytes: 1e6, of: 'stored' },
    );
    const [row] = own?.rows ?? [];
    expect(fromJson(row?.stored ?? null)).toEqual({
      adapter: 'redis',
      entryId: `${row?.message.at}-${row?.message.seq}`,
      ...row?.message,
      payload: { i: 29 },
    });
    expect(
      await bench.backend.history.sample({ userId: 'user-1', suffix: 'none' }, { messages: 1, bytes: 1, of: 'stored' }),
    ).toBeNull();
  });

  it('leaves nothing behind that does not expire', async () => {
    for (const userId of ['alice', 'bob', 'carol'])
      for (const suffix of ['a', 'b']) await retain({ userId, suffix, commandId: 'c1', payload: toJson('x') });
    await bench.backend.history.ingest(ingested('m1'));
    expect(await immortal(bench)).toEqual([]);
    await bench.advance(HOUR);
    expect(values(await bench.backend.history.users(ALL))).toEqual([]);
    // The order of the marks is in spans, which each beat of a node removes.
    await bench.sweep();
    const left = async () => {
      const found = (await keysOf(bench)).map(async (key) => [kindOf(key), (await ttlOf(bench, key)) > 0] as const);
      return new Map(await Promise.all(found));
    };
    expect(await left()).toEqual(
      new Map([
        ['streamheads', true],
        ['cmdrows', true],
        ['mark', true],
        ['seen', true],
        // The sweep notes in `meta` how far it has come.
        ['meta', false],
        ['node', true],
        // `rowspans` lists the spans of time of `cmdrows`. It has no expiry, but is removed together with the last
        // span.
        ['rowspans', false],
      ]),
    );
    await bench.advance(13 * HOUR);
    await bench.backend.history.users(ALL);
    expect([...(await left()).keys()].toSorted()).toEqual(['mark', 'meta', 'node', 'seen', 'streamheads']);
  });

  it('removes many streams that are due at once before it counts', async () => {
    await Promise.all(Array.from({ length: 1100 }, (_, i) => retain({ suffix: `s${i}` })));
    await bench.advance(1);
    await retain({ suffix: 'young' });
    await bench.advance(HOUR - 1);
    const [found] = await bench.backend.history.ofUsers(['alice'], 10);
    expect([found?.total, found?.rows.map(({ suffix }) => suffix)]).toEqual([1, ['young']]);
  });

  it('bounds the streams of a user by the documented default', async () => {
    const key = bench.store.key(bench.store.partitionOfUser('alice'), 'streams', bench.store.hash('alice'));
    const names = Array.from({ length: STREAMS_PER_USER - 1 }, (_, i) => [0, `s${i}`] as const).flat();
    await bench.store.read([['ZADD', key, ...names]]);
    await retain({ suffix: 'a' });
    expect((await bench.backend.history.streams('alice', 'a', ALL)).gaps).toEqual([]);
    await retain({ suffix: 'b' });
    expect(values(await bench.backend.history.streams('alice', 'a', ALL))).toEqual([]);
    expect((await bench.backend.history.streams('alice', 'b', ALL)).gaps).toMatchObject([{ reason: 'evicted' }]);
  });
});

async function keysOf({ store }: RedisBench): Promise<string[]> {
  const tags = tagsOf(store.namespace, store.partitions);
  const lists = await store.readAll((partition) => [
    ['KEYS', `${(tags[partition] ?? '').replace(/[[\]?*]/g, '\\$&')}*`],
  ]);
  return lists.flatMap(([keys]) => (Array.isArray(keys) ? keys.map(String) : []));
}

function kindOf(key: string): KeyKind {
  const [kind = ''] = key.slice(key.indexOf('}:') + 2).split(':');
  if (!Object.hasOwn(KINDS, kind)) throw new Error(`${key} is of no kind`);
  return kind as KeyKind;
}

async function ttlOf({ store }: RedisBench, key: string): Promise<number> {
  return Number((await store.read([['PTTL', key]]))[0]);
}

/**
 * Returns the keys that would stay for ever, because they have no expiry and nothing else removes keys of their kind.
 */
async function immortal(bench: RedisBench): Promise<string[]> {
  const found: string[] = [];
  for (const key of await keysOf(bench))
    if (KINDS[kindOf(key)].ends === 'ttl' && (await ttlOf(bench, key)) < 0) found.push(key);
  return found;
}

/** Tests how writes and reads of one turn of the event loop are sent to Redis together. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { connectCommands } from '../kit/redis.ts';
import { hashOf, keyOf, partitionOf, tagsOf } from '../../src/backends/redis/keys.ts';
import { loadPrograms } from '../../src/backends/redis/program/program.ts';
import { createStore, type Store } from '../../src/backends/redis/store.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import type { Verdict } from '../../src/backends/redis/program-calls.ts';
import { createCrypto } from '../../src/platform/system.ts';

const FOLDER = new URL('./redis-lua/', import.meta.url);

describe('the store over Redis', () => {
  let client: Client;
  let store: Store;
  let verdicts: Verdict[];
  beforeEach(async () => {
    const redis = connectCommands(inject('redisUrl'));
    await redis.connect();
    client = redis;
    verdicts = [];
    store = createStore({
      client,
      programs: loadPrograms(FOLDER),
      namespace: randomUUID(),
      partitions: 1,
      sha256: createCrypto('test').sha256,
      scopeOf: (userId) => userId,
    });
    store.onVerdict((_partition, verdict) => verdicts.push(verdict));
  });
  afterEach(() => void client.disconnect());

  const note = (what: string) => store.act(0, 'test-note', [what]);
  const notes = async () => (await store.read([['LRANGE', store.key(0, 'bus'), 0, -1]]))[0];

  it('names keys and hashes texts alike, whether or not it did so before, and however many', () => {
    const { sha256 } = createCrypto('test');
    const [tag = ''] = tagsOf(store.namespace, 1);
    const users = Array.from({ length: 12_000 }, (_, i) => `user-${i}`);
    for (const user of [...users, ...users.slice(-3), ...users.slice(0, 3)]) {
      const [one, two, three] = [store.hash(user), store.hash(user, 'tab'), store.hash(user, 'tab', 'm1')];
      expect([one, two, three]).toEqual([
        hashOf(sha256, user),
        hashOf(sha256, user, 'tab'),
        hashOf(sha256, user, 'tab', 'm1'),
      ]);
      expect(store.key(0, 'client', two)).toBe(keyOf(tag, 'client', two));
      expect(store.key(0, 'names', one, '7')).toBe(keyOf(tag, 'names', `${one}:7`));
    }
  });

  it('runs the acts of one tick in one round trip, in the order sent, and answers each', async () => {
    const before = store.roundTrips;
    expect(await Promise.all(['a', 'b', 'c'].map(note))).toEqual([1, 2, 3]);
    expect(store.roundTrips - before).toBe(1);
    expect(await notes()).toEqual(['a', 'b', 'c']);
  });

  it('splits a long tick into calls of bounded length', async () => {
    const before = store.roundTrips;
    await Promise.all(Array.from({ length: 70 }, (_, i) => note(String(i))));
    expect(store.roundTrips - before).toBe(3);
  });

  it('performs the reads of one tick in one round trip, and answers each list separately', async () => {
    const [list, text, none] = [store.key(0, 'bus'), store.key(0, 'mark', 'm'), store.key(0, 'mark', 'n')];
    await note('a');
    await client.set(text, 'x');
    const before = store.roundTrips;
    const [first, bad, last, empty] = await Promise.allSettled([
      store.read([
        ['LRANGE', list, 0, -1],
        ['GET', text],
      ]),
      store.read([['HGETALL', text]]),
      store.read([['GET', none]]),
      store.read([]),
    ]);
    expect(store.roundTrips - before).toBe(1);
    expect([first, last, empty]).toMatchObject([{ value: [['a'], 'x'] }, { value: [null] }, { value: [] }]);
    expect(bad).toMatchObject({ reason: { code: 'store_unavailable' } });
  });

  it('does not delay a short list of reads behind a long one', async () => {
    const before = store.roundTrips;
    const long = Array.from({ length: 100 }, (_, i) => ['GET', store.key(0, 'mark', String(i))] as const);
    const [many, one] = await Promise.all([store.read(long), store.read([['GET', store.key(0, 'mark', 'm')]])]);
    expect([many.length, one.length, store.roundTrips - before]).toEqual([100, 1, 2]);
  });

  it('groups reads by their tags only', async () => {
    const before = store.roundTrips;
    const foreign = [randomUUID(), randomUUID()].map((key) => store.read([['GET', key]]));
    expect([await Promise.all(foreign), store.roundTrips - before]).toEqual([[[null], [null]], 2]);
  });

  it('answers a failing act with its own error, and the others of its call normally', async () => {
    const [good, bad, next] = await Promise.allSettled([note('a'), store.act(0, 'test-fail', []), note('b')]);
    expect([good.status, bad.status, next.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await notes()).toEqual(['a', 'b']);
  });

  it('loads the program again when Redis lost it', async () => {
    await note('a');
    await client.script('FLUSH');
    expect(await note('b')).toBe(2);
  });

  it('refuses the acts of a node that was cleaned up: only its own row still has its epoch', async () => {
    await client.hset(store.key(0, 'node', 'n1'), 'epoch', '2', 'fenced', '1');
    store.identify(0, { nodeId: 'n1', epoch: 1 });
    await expect(note('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(verdicts).toEqual(['FENCED']);
  });

  it('refuses the acts of a node whose epoch has ended', async () => {
    await client.hset(store.key(0, 'node', 'n1'), 'epoch', '2');
    await client.hset(store.key(0, 'meta'), 'calls:n1', '2 0');
    store.identify(0, { nodeId: 'n1', epoch: 1 });
    await expect(note('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(verdicts).toEqual(['FENCED']);
    store.identify(0, { nodeId: 'n1', epoch: 2 });
    expect(await note('b')).toBe(1);
  });

  it('notices that the store lost confirmed data, the last writes as well as everything', async () => {
    const [row, meta] = [store.key(0, 'node', 'n1'), store.key(0, 'meta')];
    await client.hset(row, 'epoch', '1');
    await client.hset(meta, 'calls:n1', '1 0');
    store.identify(0, { nodeId: 'n1', epoch: 1 });
    await note('a');
    await note('b');
    await client.hset(meta, 'calls:n1', '1 1');
    await expect(note('c')).rejects.toMatchObject({ code: 'store_unavailable' });
    await client.hdel(meta, 'calls:n1');
    await expect(note('d')).rejects.toMatchObject({ code: 'store_unavailable' });
    await client.del(row);
    await expect(note('e')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(verdicts).toEqual(['LOST', 'LOST', 'LOST']);
    expect(await notes()).toEqual(['a', 'b']);
  });

  it('fails with store_unavailable at once while there is no connection', async () => {
    client.disconnect();
    await expect(note('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(notes()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('partitions', () => {
  it('cover equal ranges of slots, the same in every process', () => {
    const tags = tagsOf('ns', 6);
    expect(new Set(tags).size).toBe(6);
    expect(tagsOf('ns', 6)).toEqual(tags);
    expect(keyOf(tags[0] ?? '', 'client', 'x')).toBe(`${tags[0]}:client:x`);
  });

  it('receive scopes evenly', () => {
    const { sha256 } = createCrypto('test');
    const counts = [0, 0, 0];
    for (let i = 0; i < 3000; i++) counts[partitionOf(sha256(`scope-${i}`).slice(0, 22), 3)]!++;
    for (const count of counts) expect(count).toBeGreaterThan(850);
  });
});

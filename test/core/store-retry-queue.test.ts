/** Tests the retry queue of a node, for acts that the store could not take. */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import { createStoreRetryQueue } from '../../src/core/commands/retry-queue.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { RETRY_QUEUE_BYTES, RETRY_QUEUE_ENTRIES } from '../../src/core/limits.ts';
import { silentLog } from '../../src/core/ports.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { connect, testCore, user } from '../kit/core.ts';

const alice = user('alice');
const TAB = { userId: 'alice', clientId: 'tab' };

function away(): never {
  throw new CallboardError('store_unavailable', 'The store does not answer.');
}

/**
 * Creates a retry queue whose store a test can make unavailable, and records the order in which acts reached the store.
 */
function bench() {
  const clock = new FakeClock();
  const taken: string[] = [];
  const world = { away: false, tries: 0 };
  const outbox = createStoreRetryQueue({ clock, log: silentLog });
  const put = (name: string, over: { lane?: string; bytes?: number } = {}) =>
    outbox.take({
      lane: name,
      bytes: 1,
      ...over,
      async run() {
        world.tries++;
        if (world.away) away();
        taken.push(name);
        return name;
      },
    });
  return { clock, taken, world, outbox, put };
}

describe('the retry queue of a node', () => {
  it('passes everything on while the store answers', async () => {
    const { put, outbox, taken } = bench();
    expect(await Promise.all(['a', 'b'].map((name) => put(name)))).toEqual(['a', 'b']);
    expect([taken, outbox.size]).toEqual([['a', 'b'], 0]);
  });

  it('keeps acts that the store does not take, retries each second, and delivers them in order', async () => {
    const { clock, world, put, outbox, taken } = bench();
    world.away = true;
    const names = Array.from({ length: 200 }, (_, i) => `n${i}`);
    const first = names.slice(0, 100).map((name) => put(name));
    await settle();
    const more = names.slice(100).map((name) => put(name));
    await clock.advance(3_000);
    expect([taken, outbox.size]).toEqual([[], 200]);
    world.away = false;
    const late = put('late');
    await clock.advance(1_000);
    expect(await Promise.all([...first, ...more, late])).toEqual([...names, 'late']);
    expect([taken, outbox.size]).toEqual([[...names, 'late'], 0]);
  });

  it('never runs two entries of one lane at once, and does not overload an unavailable store', async () => {
    const { clock, world, put, taken } = bench();
    world.away = true;
    const all = ['a', 'b', 'c'].map((name) => put(name, { lane: 'one' }));
    await settle();
    const before = world.tries;
    await clock.advance(5_000);
    expect(world.tries - before).toBe(5);
    world.away = false;
    await clock.advance(1_000);
    await Promise.all(all);
    expect(taken).toEqual(['a', 'b', 'c']);
  });

  it('rejects at once with any other error than an unavailable store', async () => {
    const { outbox } = bench();
    const run = () => Promise.reject(new CallboardError('internal', 'broken'));
    await expect(outbox.take({ lane: 'a', bytes: 1, run })).rejects.toMatchObject({ code: 'internal' });
    expect(outbox.size).toBe(0);
  });

  it('is bounded by count and by bytes: further acts are refused', async () => {
    const { world, put, outbox } = bench();
    world.away = true;
    const big = put('big', { bytes: RETRY_QUEUE_BYTES - 10 });
    await settle();
    await expect(put('more', { bytes: 11 })).rejects.toMatchObject({ code: 'store_unavailable' });
    const small = Array.from({ length: RETRY_QUEUE_ENTRIES - 1 }, (_, i) => put(`s${i}`, { bytes: 0 }));
    await expect(put('one too many', { bytes: 0 })).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(outbox.size).toBe(RETRY_QUEUE_ENTRIES);
    outbox.stop();
    const ended = await Promise.allSettled([big, ...small]);
    expect(ended.every(({ status }) => status === 'rejected')).toBe(true);
  });

  it('gives up waiting acts when stopped, and then accepts none', async () => {
    const { clock, world, put, outbox } = bench();
    world.away = true;
    const kept = put('kept');
    await settle();
    outbox.stop();
    await expect(kept).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(put('later')).rejects.toMatchObject({ code: 'store_unavailable' });
    const before = world.tries;
    await clock.advance(10_000);
    expect(world.tries).toBe(before);
  });
});

/** Opens a core whose store can be made unavailable: it then answers nothing about commands and connections. */
async function flakyCore() {
  const world = { away: false, loseReply: false };
  const guarded = <P extends object>(port: P, names: readonly (keyof P)[]): P => {
    const copy = { ...port };
    for (const name of names) {
      const original = port[name];
      if (typeof original !== 'function') throw new Error(`${String(name)} is no method`);
      const wrapped = async (...args: unknown[]): Promise<unknown> => {
        if (world.away) away();
        const answer: unknown = await original(...args);
        if (world.loseReply) {
          world.loseReply = false;
          away();
        }
        return answer;
      };
      Object.assign(copy, { [name]: wrapped });
    }
    return copy;
  };
  const wrap = (backend: MemoryBackend): MemoryBackend => ({
    ...backend,
    commands: guarded(backend.commands, ['finish', 'rebind']),
    connections: guarded(backend.connections, ['disconnect', 'touch']),
  });
  const test = await testCore({ wrap });
  const invoke = (commandId: string) =>
    test.core.rpc.invoke(alice, { ...TAB, action: 'open', params: null, commandId });
  return { ...test, world, invoke };
}

describe('a node whose store is unavailable', () => {
  it("keeps a client's report and answers it once it is recorded", async () => {
    const { core, clock, world, invoke } = await flakyCore();
    const client = await connect(core, alice);
    const answer = invoke('c1');
    await settle();
    world.away = true;
    let acknowledged = false;
    const ended = Promise.resolve(client.result(client.last, { n: 1 })).then((result) => {
      acknowledged = true;
      return result;
    });
    await clock.advance(5_000);
    expect(acknowledged).toBe(false);
    world.away = false;
    await clock.advance(1_000);
    expect((await ended).kind).toBe('finished');
    expect(await answer).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
    await core.close();
  });

  it('records an end once although the answer of the store was lost', async () => {
    const { core, clock, counts, world, invoke } = await flakyCore();
    const client = await connect(core, alice);
    const answer = invoke('c1');
    await settle();
    world.loseReply = true;
    const ended = client.result(client.last);
    await clock.advance(1_000);
    expect((await ended).kind).toBe('duplicate');
    expect(await answer).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
    expect(counts.get('late_results')).toBeUndefined();
    await core.close();
  });

  it('records later that a link ended, unless its client has reconnected', async () => {
    const { core, clock, world } = await flakyCore();
    const gone = await connect(core, alice, { clientId: 'gone' });
    const back = await connect(core, alice, { clientId: 'back' });
    world.away = true;
    const ends = [gone.session.closed('client_closed'), back.session.closed('client_closed')];
    await clock.advance(2_000);
    const statusOf = async (clientId: string) =>
      (await core.connections.get(alice, { userId: 'alice', clientId }))?.disconnectedAt;
    expect(await statusOf('gone')).toBeNull();
    world.away = false;
    await connect(core, alice, { clientId: 'back', instanceId: 'i2' });
    await clock.advance(1_000);
    await Promise.all(ends);
    expect(await statusOf('gone')).toBe(clock.now());
    expect(await statusOf('back')).toBeNull();
    await core.close();
  });

  it('does not claim to know whether a link is still bound', async () => {
    const { core, world } = await flakyCore();
    const client = await connect(core, alice);
    world.away = true;
    await expect(client.session.alive()).rejects.toMatchObject({ code: 'store_unavailable' });
    world.away = false;
    expect(await client.session.alive()).toBe(true);
    await core.close();
  });
});

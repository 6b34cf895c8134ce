import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KINDS } from '../../src/backends/redis/keys.ts';
import type { Client } from '../../src/backends/redis/types.ts';
import { toJson } from '../../src/core/json.ts';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

describe('what commands leave in Redis', () => {
  let bench: RedisBench;
  let client: Client;
  beforeEach(async () => {
    bench = await redisBench({ partitions: 1 });
    client = bench.connect();
    await client.connect();
  });
  afterEach(async () => {
    client.disconnect();
    await bench.close();
  });
  const keys = async (): Promise<readonly { readonly name: string; readonly kind: string; readonly ttl: number }[]> => {
    const prefix = bench.store.key(0, 'meta').slice(0, -4);
    const found: { name: string; kind: string; ttl: number }[] = [];
    let cursor = '0';
    do {
      const [next, names] = await client.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1000);
      for (const name of names) {
        const kind = name.slice(prefix.length).split(':')[0] ?? '';
        found.push({ name, kind, ttl: await client.pttl(name) });
      }
      cursor = next;
    } while (cursor !== '0');
    return found;
  };
  const OWN = [
    'cmd',
    'params',
    'result',
    'waiting',
    'running',
    'due',
    'ended',
    'cmds',
    'reserved',
    'scopes',
    'waiters',
  ];

  it('has an expiry wherever the list of keys says so, live and ended', async () => {
    const { commands } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('queued'));
    await dispatched(bench, 'running');
    await dispatched(bench, 'ended');
    await commands.finish(keyFor('ended'), ending());
    const all = await keys();
    expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set([...all.map(({ kind }) => kind), ...OWN]));
    const ends: Record<string, { readonly ends: string } | undefined> = KINDS;
    for (const { kind, ttl } of all) {
      if (ends[kind]?.ends === 'ttl') expect([kind, ttl > 0]).toEqual([kind, true]);
      else expect(ends[kind]?.ends).toMatch(/^(emptied|node|kept)$/);
    }
  });

  it('is nothing of a command once it is forgotten', async () => {
    const { commands, inspector } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    for (const id of ['c1', 'c2', 'c3']) await dispatched(bench, id);
    await commands.admit(admission('c4'));
    await commands.finish(keyFor('c1'), ending());
    await commands.finish(keyFor('c2'), ending({ payload: toJson('x'.repeat(40_000)) }));
    await commands.settle(keyFor('c3'), { kind: 'give_up', code: 'node_lost', instanceId: null });
    await commands.settle(keyFor('c4'), { kind: 'cancel', reason: null, by: 'test' });
    await bench.clock.advance(TERMINAL_MS);
    expect(await inspector.summary()).toMatchObject({ trackedCommands: 0, dueCommands: 0, sampleSize: 0 });
    expect((await keys()).map(({ kind }) => kind).filter((kind) => OWN.includes(kind))).toEqual([]);
    expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
  });

  it('is known for as long as the deployment says', async () => {
    const brief = await redisBench({ partitions: 1, idempotencyWindowMs: 60_000 });
    const { commands } = brief.backend;
    expect(commands.windowMs).toBe(60_000);
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('c1'));
    await commands.dispatch(keyFor('c1'), BOUND);
    await commands.finish(keyFor('c1'), ending());
    await brief.clock.advance(59_999);
    expect(await commands.admit(admission('c1'))).toMatchObject({ kind: 'attached' });
    await brief.clock.advance(1);
    expect(await commands.admit(admission('c1'))).toMatchObject({ kind: 'admitted' });
    await brief.close();
  });

  it('goes in bounded steps, and spares a command that came anew under the same id', async () => {
    const { commands } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    for (let i = 0; i < 10; i++) {
      await dispatched(bench, `c${i}`);
      await commands.finish(keyFor(`c${i}`), ending());
    }
    await bench.clock.advance(TERMINAL_MS);
    expect(await commands.admit(admission('c9'))).toMatchObject({ kind: 'admitted', command: { version: 1 } });
    expect(await bench.store.act(0, 'commands-sweep', [4])).toBe(1);
    expect(await bench.store.act(0, 'commands-sweep', [100])).toBe(0);
    expect(await read(bench, 'c9')).toMatchObject({ stage: 'queued', lateResults: 0 });
    expect((await keys()).filter(({ kind }) => kind === 'cmd')).toHaveLength(1);
    expect(await commands.result(keyFor('c9'))).toBe(null);
  });

  it('names a command no more whose record was collected with nobody there to end it', async () => {
    const { commands, nodes, inspector } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('c1'));
    await dispatched(bench, 'c2');
    await client.del(bench.store.key(0, 'cmd', bench.store.hash('alice', 'tab', 'c1')));
    await client.del(bench.store.key(0, 'cmd', bench.store.hash('alice', 'tab', 'c2')));
    await bench.clock.advance(30_000);
    expect(await nodes.due(10)).toEqual([]);
    for (const id of ['c1', 'c2'])
      expect(await commands.settle(keyFor(id), { kind: 'expire' })).toEqual({ kind: 'unknown' });
    expect(await commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up')).toEqual({
      requeued: 0,
      unfinished: [],
      orphaned: [],
    });
    expect(await inspector.summary()).toMatchObject({ trackedCommands: 0, dueCommands: 0, sampleSize: 0 });
    await bench.clock.advance(2 * 24 * 3600_000);
    expect(await commands.admit(admission('c3', { scopeLimit: 1 }))).toMatchObject({ kind: 'admitted' });
  });

  it('are at most so many streams of a user, however many clients its commands go to', async () => {
    await bench.close();
    bench = await redisBench({ partitions: 1, streamsPerUser: 3 });
    for (let i = 0; i < 5; i++)
      await bench.backend.commands.admit(admission(`c${i}`, { clientId: `tab-${i}`, connectWithinMs: 9_000 }));
    const { rows } = await bench.backend.history.streams('alice', null, { first: 10, after: null });
    expect(rows.map(({ row }) => row.suffix)).toEqual(['clients/tab-2', 'clients/tab-3', 'clients/tab-4']);
  });
});

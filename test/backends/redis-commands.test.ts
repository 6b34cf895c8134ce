import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedisCommands } from '../../src/backends/redis/commands.ts';
import { KINDS } from '../../src/backends/redis/keys.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { Client } from '../../src/backends/redis/wire.ts';
import type { Command } from '../../src/core/delivery/command.ts';
import { toJson } from '../../src/core/json.ts';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor, kinds, openNode, read } from '../contract/kit.ts';
import { commandModel } from '../contract/model.ts';
import { redisBench, type RedisBench } from '../contract/redis-kit.ts';

const WAITS = { userId: null, clientId: null, nodeId: null, callerNodeId: null, minAgeMs: null };
const RECORDS = { userId: null, clientId: null, stage: null, outcome: null, nodeId: null, admittedAfter: null };
const ALL = { first: 100, after: null };

/** The answer to each act on a command was lost and it is asked again: what is told is the first answer. */
async function resending(): Promise<RedisBench> {
  const bench = await redisBench();
  const act: Store['act'] = async (...asked) => {
    const answer = await bench.store.act(...asked);
    await bench.store.act(...asked);
    return answer;
  };
  const commands = createRedisCommands({ ...bench.parts, store: { ...bench.store, act } });
  return { ...bench, backend: { ...bench.backend, commands } };
}

commandModel('redis where each act is sent twice', resending, 20);

describe('an act whose answer was lost, sent again', () => {
  /** What moves with each sending, and says nothing of a command's state. */
  const state = (command: Command | null) => {
    const { version: _version, sightings, ...rest } = command ?? { version: 0, sightings: [] };
    return { ...rest, seen: sightings.map(({ messageId }) => messageId) };
  };
  const play = async (bench: RedisBench): Promise<unknown> => {
    const { commands, waiters, inspector } = bench.backend;
    const node = await openNode(bench);
    await commands.rebind(ALICE, BOUND, 'up');
    for (const id of ['acked', 'failed', 'asked', 'late']) await dispatched(bench, id);
    await commands.admit(admission('queued'));
    await commands.admit(admission('dropped'));
    await commands.report(keyFor('acked'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
    const kept = { payload: toJson(1), spill: null };
    await commands.report(keyFor('acked'), { instanceId: 'i1', kind: 'progress', payload: kept.payload, kept });
    const error = { code: 'handler_failed', message: 'no/way' };
    await commands.finish(keyFor('failed'), ending({ kind: 'error', payload: null, error }));
    await commands.finish(keyFor('late'), ending());
    await commands.finish(keyFor('late'), ending({ instanceId: 'i0' }));
    await commands.settle(keyFor('asked'), { kind: 'cancel', reason: 'enough', by: 'test' });
    await commands.settle(keyFor('dropped'), { kind: 'cancel', reason: null, by: 'test' });
    await commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up');
    const ids = ['acked', 'failed', 'asked', 'late', 'queued', 'dropped'];
    const replies = (await node.take()).filter(({ kind }) => kind === 'reply');
    const rows = [];
    for (const id of ids) rows.push(await kinds(bench, id));
    const stats = await bench.backend.dedup.stats(300);
    return {
      records: (await commands.get(ids.map((id) => keyFor(id)))).map(state),
      rows,
      results: [await commands.result(keyFor('late')), await commands.result(keyFor('failed'))],
      replied: replies.map((row) => row.kind === 'reply' && row.reply.rpcId),
      waits: (await waiters.list(WAITS, ALL)).rows.map(({ row }) => row.waiter.rpcId),
      scopes: (await inspector.scopes(ALL)).rows.map(({ row }) => row),
      dedup: [stats.seen, stats.unique],
    };
  };

  it('leaves what it left when it was sent once', async () => {
    const once = await redisBench();
    const twice = await resending();
    const left = await play(once);
    expect(await play(twice)).toEqual(left);
    expect(left).toMatchObject({
      rows: [
        ['command', 'progress'],
        ['command', 'error'],
        ['command', 'cancel'],
        ['command', 'result', 'late_result'],
        ['command'],
        ['command', 'cancel'],
      ],
      waits: ['rpc-acked', 'rpc-asked', 'rpc-queued'],
    });
    await once.close();
    await twice.close();
  });
});

describe('commands of several processes over one Redis', () => {
  let here: RedisBench;
  let there: RedisBench;
  beforeEach(async () => {
    here = await redisBench({ leaseMs: 8_000 });
    there = await redisBench({ leaseMs: 8_000, beside: here });
  });
  afterEach(async () => {
    await there.close();
    await here.close();
  });
  const both = () => [here.backend.commands, there.backend.commands] as const;
  const often = <T>(run: (i: number) => T | Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: 20 }, (_, i) => run(i)));
  const count = (answers: readonly { readonly kind: string }[], kind: string): number =>
    answers.filter((answer) => answer.kind === kind).length;

  it('dispatches once, ends once and replies once, however many ask at once', async () => {
    const node = await openNode(here);
    await here.backend.commands.rebind(ALICE, BOUND, 'up');
    const admitted = await often((i) =>
      both()[i % 2]!.admit(admission('c1', { waiter: { ...admission('c1').waiter, rpcId: `r${i % 4}` } })),
    );
    expect([count(admitted, 'admitted'), count(admitted, 'attached')]).toEqual([1, 19]);
    const written = await often((i) => both()[i % 2]!.dispatch(keyFor('c1'), BOUND));
    expect(count(written, 'dispatch')).toBe(1);
    const ended = await often((i) => both()[i % 2]!.finish(keyFor('c1'), ending()));
    expect([count(ended, 'finished'), count(ended, 'duplicate')]).toEqual([1, 19]);
    const rows = await node.take();
    expect(rows.filter(({ kind }) => kind === 'command')).toHaveLength(1);
    const replies = rows.flatMap((row) => (row.kind === 'reply' ? [row.reply.rpcId] : []));
    expect(replies.sort()).toEqual(['r0', 'r1', 'r2', 'r3']);
  });

  it('never reserve more than a scope holds', async () => {
    await here.backend.commands.rebind(ALICE, BOUND, 'up');
    const answers = await often((i) => both()[i % 2]!.admit(admission(`c${i}`, { scopeLimit: 7 })));
    expect([count(answers, 'admitted'), count(answers, 'refused')]).toEqual([7, 13]);
  });

  it('tell the node that holds the link what another admits, cancels and ends', async () => {
    const holder = await openNode(there, 'n2');
    await there.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2' }, 'up');
    await here.backend.commands.admit(admission('c1'));
    expect(await holder.take()).toEqual([{ kind: 'command', key: keyFor('c1') }]);
    await there.backend.commands.dispatch(keyFor('c1'), { ...BOUND, nodeId: 'n2' });
    await here.backend.commands.settle(keyFor('c1'), { kind: 'cancel', reason: null, by: 'test' });
    await here.backend.commands.settle(keyFor('c1'), { kind: 'give_up', code: 'node_lost', instanceId: null });
    expect(await holder.take()).toEqual([
      { kind: 'cancel', key: keyFor('c1'), reason: null },
      { kind: 'ended', key: keyFor('c1') },
    ]);
  });

  it('count a client as connected only while the node that holds its link lives', async () => {
    await openNode(there, 'n2');
    await there.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2' }, 'up');
    expect(await here.backend.commands.admit(admission('c1'))).toMatchObject({ kind: 'admitted' });
    // Nobody reads the mailbox of a dead node, so nothing may be waited for here.
    await here.clock.advance(9_000);
    expect(await here.backend.commands.admit(admission('c2'))).toEqual({ kind: 'refused', code: 'not_connected' });
    expect(await here.backend.commands.admit(admission('c3', { connectWithinMs: 1_000 }))).toMatchObject({
      kind: 'admitted',
      command: { stage: 'admitted', nodeId: null },
    });
  });
});

describe('commands over partitions', () => {
  let bench: RedisBench;
  let users: readonly string[];
  beforeEach(async () => {
    bench = await redisBench({ partitions: 3 });
    users = Array.from({ length: 12 }, (_, i) => `user-${String(i).padStart(2, '0')}`);
    expect(new Set(users.map((user) => bench.store.partitionOfUser(user))).size).toBe(3);
    for (const userId of users)
      await bench.backend.commands.admit(
        admission('c1', { userId, scopeId: userId, connectWithinMs: 1_000, respondWithinMs: 10_000 }),
      );
  });
  afterEach(() => bench.close());

  it('answer for many at once in the order asked, in one round trip of each partition', async () => {
    const asked = [...users.toReversed(), 'nobody'].map((userId) => ({ ...keyFor('c1'), userId }));
    const before = bench.store.roundTrips;
    const found = await bench.backend.commands.get(asked);
    expect(bench.store.roundTrips - before).toBe(3);
    expect(found.map((command) => command?.userId)).toEqual([...users.toReversed(), undefined]);
    expect(await bench.backend.commands.get([])).toEqual([]);
  });

  it('are listed in one order and counted as one', async () => {
    const { inspector } = bench.backend;
    const pages: string[] = [];
    let after: readonly string[] | null = null;
    do {
      const scan = await inspector.list(RECORDS, { first: 5, after });
      pages.push(...scan.rows.map(({ row }) => row.userId));
      after = scan.next;
    } while (after !== null);
    expect(pages).toEqual(users);
    const scopes = await inspector.scopes({ first: 7, after: null });
    expect(scopes.rows.map(({ row }) => row.scopeId)).toEqual(users.slice(0, 7));
    const rest = await inspector.scopes({ first: 7, after: scopes.next });
    expect([rest.rows.map(({ row }) => row.scopeId), rest.next]).toEqual([users.slice(7), null]);
    await bench.clock.advance(1_000);
    expect(await inspector.summary()).toMatchObject({ trackedCommands: 12, dueCommands: 12, sampleSize: 12 });
  });

  it('find what a filter keeps beyond what one look reads', async () => {
    const { commands, inspector } = bench.backend;
    for (let i = 0; i < 1100; i++)
      await commands.admit(admission(`c${i}`, { scopeLimit: 5_000, clientId: `t${i % 9}`, connectWithinMs: 9_000 }));
    await commands.settle({ ...keyFor('c1'), userId: 'user-11' }, { kind: 'cancel', reason: null, by: 'test' });
    const scan = await inspector.list({ ...RECORDS, stage: 'terminal' }, { first: 5, after: null });
    expect([scan.rows.map(({ row }) => row.userId), scan.next]).toEqual([['user-11'], null]);
  });
});

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
});

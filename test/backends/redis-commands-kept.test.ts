/** Tests which keys commands leave in Redis, and when these are removed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KINDS } from '../../src/backends/redis/keys.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { toJson } from '../../src/core/json.ts';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { REPORT } from './kit/test-node.ts';

/**
 * The longest time for which Redis keeps the name of a command, in milliseconds. Names are removed by spans of time, so
 * a command from the start of a span is kept longest.
 */
const LONGEST_SPAN_MS = TERMINAL_MS + TERMINAL_MS / 2 + 660_000;

describe('the keys that commands leave in Redis', () => {
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
    ...['client', 'names', 'cmdusers', 'ended', 'endedspans', 'endedcount', 'results', 'spans'],
    ...['connectdue', 'scopedue', 'reserved', 'scopes'],
  ];

  it('have an expiry wherever the list of keys says so, live and ended', async () => {
    const { commands } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('queued'));
    await dispatched(bench, 'running');
    await dispatched(bench, 'ended');
    await commands.finish(keyFor('ended'), ending());
    await commands.admit(admission('parked', { clientId: 'away', connectWithinMs: 9_000 }));
    const all = await keys();
    expect(OWN.filter((kind) => !all.some((one) => one.kind === kind))).toEqual([]);
    const ends: Record<string, { readonly ends: string } | undefined> = KINDS;
    for (const { kind, ttl } of all) {
      if (ends[kind]?.ends === 'ttl') expect([kind, ttl > 0]).toEqual([kind, true]);
      else expect(ends[kind]?.ends).toMatch(/^(emptied|node|kept)$/);
    }
  });

  it('hold nothing of a command once its span is forgotten', async () => {
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
    expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
    await bench.clock.advance(LONGEST_SPAN_MS - TERMINAL_MS);
    await commands.rebind(ALICE, BOUND, 'down');
    await bench.sweep();
    expect(await bench.backend.nodes.due(10)).toEqual([]);
    expect((await keys()).map(({ kind }) => kind).filter((kind) => OWN.includes(kind))).toEqual([]);
  });

  it('are kept for as long as the deployment says', async () => {
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

  it('keep a record for its whole window also where the window was shorter when the first command of the span ended', async () => {
    const brief = await redisBench({ partitions: 1, beside: bench, idempotencyWindowMs: 60_000 });
    for (const { backend } of [brief, bench]) await backend.commands.rebind(ALICE, BOUND, 'up');
    const end = async ({ backend }: RedisBench, id: string): Promise<void> => {
      await backend.commands.admit(admission(id));
      await backend.commands.settle(keyFor(id), { kind: 'cancel', reason: null, by: 'test' });
    };
    await end(brief, 'short');
    await end(bench, 'long');
    await bench.clock.advance(TERMINAL_MS - 1);
    await bench.sweep();
    const { rows } = await bench.backend.inspector.list(ANY_COMMAND, { first: 20, after: null });
    expect(rows.map(({ row }) => row.commandId)).toEqual(['long']);
    expect(await bench.backend.commands.admit(admission('long'))).toMatchObject({ kind: 'attached' });
    expect(await bench.backend.commands.admit(admission('short'))).toMatchObject({ kind: 'admitted' });
    await brief.close();
  });

  it('name a command that ended long after its deadline for as long as its record is known', async () => {
    const { commands, inspector } = bench.backend;
    const listed = async () => {
      await bench.sweep();
      const { rows } = await inspector.list(ANY_COMMAND, { first: 20, after: null });
      return rows.map(({ row }) => row.commandId);
    };
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('late'));
    await bench.clock.advance(TERMINAL_MS);
    await commands.settle(keyFor('late'), { kind: 'expire' });
    await bench.clock.advance(TERMINAL_MS - 1);
    expect(await listed()).toEqual(['late']);
    await bench.clock.advance(1);
    expect(await listed()).toEqual([]);
  });

  it('are removed in bounded steps, which spare a new command with the same id', async () => {
    const { commands } = bench.backend;
    const client = (i: number) => ({ userId: `user-${i}`, clientId: 'tab' });
    const end = async (i: number): Promise<void> => {
      await commands.rebind(client(i), BOUND, 'up');
      await commands.admit(admission('c1', client(i)));
      await commands.settle(keyFor('c1', client(i)), { kind: 'cancel', reason: null, by: 'test' });
    };
    for (let first = 0; first < 150; first += 50)
      await Promise.all(Array.from({ length: 50 }, (_, i) => end(first + i)));
    const spans = async () => (await keys()).filter(({ kind }) => kind === 'ended').length;
    await bench.clock.advance(LONGEST_SPAN_MS);
    const again = keyFor('c1', client(9));
    expect(await commands.admit(admission('c1', client(9)))).toMatchObject({
      kind: 'admitted',
      command: { version: 1 },
    });
    expect(await spans()).toBe(150);
    // A beat removes 128 spans.
    await bench.sweep();
    expect(await spans()).toBe(22);
    for (let i = 0; i < 2; i++) await bench.sweep();
    expect(await commands.get([again])).toMatchObject([{ stage: 'queued', lateResults: 0 }]);
    expect(await spans()).toBe(0);
    const { rows } = await bench.backend.inspector.list(ANY_COMMAND, { first: 20, after: null });
    expect(rows.map(({ row }) => row.userId)).toEqual(['user-9']);
  });

  it('are forgotten as fast as commands end: a beat forgets spans, however many commands each has', async () => {
    const { commands, nodes } = bench.backend;
    const detach = await nodes.attach('n1', {
      deliver() {},
      lost: async () => {},
      linksLost() {},
      revived() {},
    });
    await commands.rebind(ALICE, BOUND, 'up');
    for (let i = 0; i < 300; i++) {
      await commands.admit(admission(`c${i}`));
      await commands.settle(keyFor(`c${i}`), { kind: 'cancel', reason: null, by: 'test' });
    }
    await bench.clock.advance(LONGEST_SPAN_MS);
    await nodes.beat('n1', REPORT);
    const kinds = (await keys()).map(({ kind }) => kind);
    expect(kinds.filter((kind) => /^(names|ended|endedspans|endedcount|spans|cmdusers)$/.test(kind))).toEqual([]);
    detach();
  });

  it('are a bounded number of streams per user, for any number of clients', async () => {
    await bench.close();
    bench = await redisBench({ partitions: 1, streamsPerUser: 3 });
    for (let i = 0; i < 5; i++)
      await bench.backend.commands.admit(admission(`c${i}`, { clientId: `tab-${i}`, connectWithinMs: 9_000 }));
    const { rows } = await bench.backend.history.streams('alice', null, { first: 10, after: null });
    expect(rows.map(({ row }) => row.suffix)).toEqual(['clients/tab-2', 'clients/tab-3', 'clients/tab-4']);
  });
});

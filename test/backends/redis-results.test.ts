/** Tests how long results of ended commands stay in Redis. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { toJson } from '../../src/core/json.ts';
import { CALLER, admission, ALICE, BOUND, dispatched, ending, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const RETENTION_MS = 4_000;
const WAIT = { rpcId: 'again', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;

describe('results over Redis', () => {
  let bench: RedisBench;
  beforeEach(async () => {
    bench = await redisBench({ retentionMs: RETENTION_MS });
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
  });
  afterEach(() => bench.close());

  const given = async (): Promise<readonly unknown[]> => {
    const { commands, waiters } = bench.backend;
    const [repeated, awaited] = [
      await commands.admit(admission('c1', { waiter: { ...WAIT, rpcId: 'repeated' } })),
      await waiters.attach(keyFor('c1'), WAIT),
    ];
    if (repeated.kind !== 'attached' || awaited.kind !== 'satisfied') throw new Error('it had to be known and ended');
    expect([repeated.command.outcome, awaited.command.outcome]).toEqual(['completed', 'completed']);
    const [read] = await commands.get([keyFor('c1')]);
    const expired = [read, repeated.command, awaited.command].map((command) => command?.resultExpired);
    return [await commands.result(keyFor('c1')), repeated.result, awaited.result, ...expired];
  };

  it('are returned exactly as long as history is retained; the outcome stays for the hour', async () => {
    await dispatched(bench, 'c1');
    const payload = toJson({ secret: 'x'.repeat(40_000) });
    await bench.backend.commands.finish(keyFor('c1'), ending({ payload }));
    await bench.advance(RETENTION_MS - 1);
    expect(await given()).toEqual([payload, payload, payload, false, false, false]);
    await bench.advance(1);
    expect(await given()).toEqual([null, null, null, true, true, true]);
    await bench.advance(TERMINAL_MS - RETENTION_MS - 1);
    expect(await given()).toEqual([null, null, null, true, true, true]);
    await bench.advance(1);
    expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
  });

  it('are removed from Redis soon after, whole spans of them, by their own expiry', async () => {
    for (const id of ['c1', 'c2']) {
      await dispatched(bench, id);
      await bench.backend.commands.finish(keyFor(id), ending());
    }
    const { store } = bench;
    const partition = store.partitionOfUser('alice');
    const span = bench.now() - (bench.now() % (RETENTION_MS / 4));
    const name = store.key(partition, 'results', `${store.hash('alice')}:${span}`);
    const [held, left] = await store.read([
      ['HLEN', name],
      ['PTTL', name],
    ]);
    expect(held).toBe(2);
    expect(Number(left)).toBeGreaterThan(RETENTION_MS + RETENTION_MS / 4);
    expect(Number(left)).toBeLessThanOrEqual(RETENTION_MS + RETENTION_MS / 4 + 60_000);
  });
});

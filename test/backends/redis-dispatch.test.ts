/**
 * Tests dispatches over Redis that are sent again. Only a repetition of the attempt that marked the command gets the
 * command again.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { admission, ALICE, BOUND, ending, keyFor, openNode } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const SKIP = { kind: 'skip' };

describe('a dispatch over Redis that is sent again', () => {
  let bench: RedisBench;
  beforeEach(async () => {
    bench = await redisBench();
    await openNode(bench);
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    await bench.backend.commands.admit(admission('c1'));
  });
  afterEach(() => bench.close());
  const dispatch = (attempt?: string, over: Partial<typeof BOUND> = {}) =>
    bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, ...over }, attempt);

  it('gets the same answer if it is the attempt that set the mark, params included, and counts once', async () => {
    const first = await dispatch('7');
    expect(first).toMatchObject({ kind: 'dispatch', params: toJson({ n: 1 }), command: { attempts: 1 } });
    expect(await dispatch('7')).toEqual(first);
  });

  it('is skipped for every other attempt, link and node', async () => {
    await dispatch('7');
    expect(await dispatch('8')).toEqual(SKIP);
    expect(await dispatch()).toEqual(SKIP);
    await bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up');
    expect(await dispatch('7')).toEqual(SKIP);
    expect(await dispatch('7', { epoch: 2 })).toEqual(SKIP);
    expect(await dispatch('7', { nodeId: 'n2' })).toEqual(SKIP);
  });

  it('is skipped once the client has reported, or the command ended or is due', async () => {
    await dispatch('7');
    await bench.backend.commands.report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
    expect(await dispatch('7')).toEqual(SKIP);
    await bench.backend.commands.finish(keyFor('c1'), ending());
    expect(await dispatch('7')).toEqual(SKIP);
    await bench.backend.commands.admit(admission('c2'));
    const again = () => bench.backend.commands.dispatch(keyFor('c2'), BOUND, '8');
    expect(await again()).toMatchObject({ kind: 'dispatch' });
    await bench.advance(30_000);
    expect(await again()).toEqual(SKIP);
  });

  it('keeps the params no longer than the command lives', async () => {
    const { store } = bench;
    const client = store.key(store.partitionOfUser('alice'), 'client', store.hash('alice', 'tab'));
    const params = async () => (await store.read([['HGET', client, 'pc1']]))[0];
    await dispatch('7');
    const before = await params();
    await bench.backend.commands.finish(keyFor('c1'), ending());
    expect([before, await params()]).toEqual([toJson({ n: 1 }), null]);
  });
});

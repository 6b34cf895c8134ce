/** Tests that the limits of shares hold over several nodes, and over the partitions of a namespace. */
import { afterEach, describe, expect, it } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { shareBounds, type GivenBounds } from '../../src/core/shares/share-bounds.ts';
import { admission } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

/** 1000 bytes of JSON. */
const PARAMS = toJson('x'.repeat(998));

describe('shares in Redis', () => {
  const open: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });
  async function opened(given: GivenBounds, over: { partitions: number; beside?: RedisBench }): Promise<RedisBench> {
    const bench = await redisBench({ bounds: shareBounds(given), ...over });
    open.push(bench);
    return bench;
  }
  const park = ({ backend }: RedisBench, userId: string, id: string) => {
    const over = { userId, scopeId: userId, params: PARAMS, connectWithinMs: 60_000 };
    return backend.commands.admit(admission(id, over));
  };
  const full = { kind: 'refused', code: 'store_full', share: 'queued_bytes' };

  it('count what every node writes, and each node reads the same amounts', async () => {
    const given = { queued_bytes: { guarantee: 1_000, total: 4_000 } };
    const first = await opened(given, { partitions: 1 });
    const second = await opened(given, { partitions: 1, beside: first });
    for (const [i, node] of [first, second, first].entries())
      expect(await park(node, 'alice', `a${i}`)).toMatchObject({ kind: 'admitted' });
    for (const node of [first, second]) {
      expect(await park(node, 'alice', 'a9')).toEqual({ ...full, code: 'share_exceeded' });
      expect((await node.backend.sharesInUse?.())?.get('queued_bytes')).toBe(3_000);
    }
    expect(await park(second, 'bob', 'b1')).toMatchObject({ kind: 'admitted' });
    expect(await park(first, 'carol', 'c1')).toEqual(full);
    const cancel = { kind: 'cancel', reason: null, by: 'test' } as const;
    await second.backend.commands.settle({ userId: 'alice', clientId: 'tab', commandId: 'a0' }, cancel);
    expect(await park(first, 'carol', 'c1')).toMatchObject({ kind: 'admitted' });
  });

  it('give each partition its part of a total, and add up to the use of all', async () => {
    const bench = await opened({ queued_bytes: { guarantee: 1_000, total: 2_000 } }, { partitions: 2 });
    const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
    const answers: Awaited<ReturnType<typeof park>>[] = [];
    for (const userId of users) answers.push(await park(bench, userId, 'c1'));
    const admitted = users.filter((_, i) => answers[i]?.kind === 'admitted');
    expect(admitted.map((userId) => bench.store.partitionOfUser(userId)).toSorted()).toEqual([0, 1]);
    expect(answers.filter(({ kind }) => kind === 'refused')).toEqual(Array.from({ length: 18 }, () => full));
    expect((await bench.backend.sharesInUse?.())?.get('queued_bytes')).toBe(2_000);
  });
});

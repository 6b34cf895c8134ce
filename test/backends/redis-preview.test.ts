/** Tests that a preview of an admission writes nothing to Redis. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { admission, ALICE, BOUND, dispatched, ending, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

/** Returns the serialized value of every key of the namespace, by name. */
async function dump({ store }: RedisBench): Promise<Record<string, string>> {
  const held: Record<string, string> = {};
  for (let partition = 0; partition < store.partitions; partition++) {
    const tag = store.key(partition, 'meta').slice(0, -'meta'.length);
    const [names] = await store.read([['KEYS', `${tag}*`]]);
    for (const name of [names].flat().map(String)) {
      const [value] = await store.read([['DUMP', name]]);
      held[name] = String(value);
    }
  }
  return held;
}

describe('a preview of an admission over Redis', () => {
  let bench: RedisBench;
  beforeEach(async () => {
    bench = await redisBench();
  });
  afterEach(() => bench.close());

  it('leaves every key of the store as it was, whatever it answers', async () => {
    const { commands } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    for (const id of ['queued', 'waited']) await commands.admit(admission(id));
    await dispatched(bench, 'running');
    await dispatched(bench, 'ended');
    await commands.finish(keyFor('ended'), ending());
    await bench.quiet();
    const before = await dump(bench);
    expect(Object.keys(before).length).toBeGreaterThan(10);
    const answers = [
      await commands.preview(admission('new')),
      await commands.preview(admission('new', { userId: 'nobody' })),
      await commands.preview(admission('new', { namedInstanceId: 'i9' })),
      await commands.preview(admission('new', { scopeLimit: 1 })),
      await commands.preview(admission('queued')),
      await commands.preview(admission('running', { digest: 'd2' })),
      await commands.preview(admission('ended')),
    ];
    await bench.quiet();
    expect(await dump(bench)).toEqual(before);
    expect(answers.map(({ answer }) => (answer.kind === 'refused' ? answer.code : answer.kind))).toEqual([
      ...['admitted', 'not_connected', 'instance_mismatch', 'capacity_exceeded'],
      ...['attached', 'command_conflict', 'attached'],
    ]);
  });
});

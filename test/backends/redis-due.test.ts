/** Tests the index of deadlines over Redis. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { admission, ALICE, BOUND, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

/** The number of capacity scopes in the test. One search for due commands reads fewer scopes. */
const SCOPES = 300;
/** The number of admissions that are sent at the same time: few enough for a busy machine to answer them in time. */
const AT_ONCE = 20;

describe('the deadlines over Redis', () => {
  let bench: RedisBench;
  beforeEach(async () => {
    bench = await redisBench({ partitions: 1 });
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
  });
  afterEach(() => bench.close());

  const admit = (id: string, scopeId: string, respondWithinMs: number) =>
    bench.backend.commands.admit(admission(id, { scopeId, respondWithinMs, connectWithinMs: 0 }));
  const scopesToLookInto = async (): Promise<readonly unknown[]> => {
    const [found] = await bench.store.read([['ZRANGE', bench.store.key(0, 'scopedue'), 0, -1]]);
    return [found].flat();
  };

  it('are found although many scopes without a due command come first, and each such scope is searched once', async () => {
    const { commands, nodes } = bench.backend;
    for (let first = 0; first < SCOPES; first += AT_ONCE) {
      const ids = Array.from({ length: AT_ONCE }, (_, i) => `c${first + i}`);
      await Promise.all(ids.map((id) => admit(id, id, 1_000)));
      await Promise.all(ids.map((id) => commands.settle(keyFor(id), { kind: 'cancel', reason: null, by: 'test' })));
    }
    await admit('late', 'late', 2_000);
    await admit('far', 'far', 60_000);
    expect(await scopesToLookInto()).toHaveLength(SCOPES + 2);
    await bench.clock.advance(2_000);
    expect(await nodes.due(1)).toEqual([keyFor('late')]);
    expect(await scopesToLookInto()).toHaveLength(2);
  });

  it('cost a call no write of their own while the scope has an earlier one', async () => {
    await admit('first', 'a', 1_000);
    const score = async () =>
      (await bench.store.read([['ZRANGE', bench.store.key(0, 'scopedue'), 0, -1, 'WITHSCORES']]))[0];
    const before = await score();
    await admit('second', 'a', 5_000);
    await bench.backend.commands.settle(keyFor('second'), { kind: 'cancel', reason: null, by: 'test' });
    await bench.backend.commands.settle(keyFor('first'), { kind: 'cancel', reason: null, by: 'test' });
    expect(await score()).toEqual(before);
  });

  it('are found after a search that ended with no command in the scope', async () => {
    const { commands, nodes } = bench.backend;
    await admit('first', 'a', 1_000);
    await commands.settle(keyFor('first'), { kind: 'cancel', reason: null, by: 'test' });
    await bench.clock.advance(1_000);
    expect(await nodes.due(1)).toEqual([]);
    expect(await scopesToLookInto()).toEqual([]);
    await admit('second', 'a', 1_000);
    await bench.clock.advance(1_000);
    expect(await nodes.due(1)).toEqual([keyFor('second')]);
  });
});

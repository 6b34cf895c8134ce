/** Tests commands whose users are in several partitions: reads, listings and counts. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { admission, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';

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

  it('answer for many keys in the order requested, with one round trip per partition', async () => {
    const requested = [...users.toReversed(), 'nobody'].map((userId) => ({ ...keyFor('c1'), userId }));
    const before = bench.store.roundTrips;
    const found = await bench.backend.commands.get(requested);
    expect(bench.store.roundTrips - before).toBe(3);
    expect(found.map((command) => command?.userId)).toEqual([...users.toReversed(), undefined]);
    expect(await bench.backend.commands.get([])).toEqual([]);
  });

  it('are listed in one order and counted as one', async () => {
    const { inspector } = bench.backend;
    const pages: string[] = [];
    let after: readonly string[] | null = null;
    do {
      const scan = await inspector.list(ANY_COMMAND, { first: 5, after });
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

  it('find the rows that a filter selects beyond those that one read covers', async () => {
    const { commands, inspector } = bench.backend;
    for (let i = 0; i < 1100; i++)
      await commands.admit(admission(`c${i}`, { scopeLimit: 5_000, clientId: `t${i % 9}`, connectWithinMs: 9_000 }));
    await commands.settle({ ...keyFor('c1'), userId: 'user-11' }, { kind: 'cancel', reason: null, by: 'test' });
    const scan = await inspector.list({ ...ANY_COMMAND, stage: 'terminal' }, { first: 5, after: null });
    expect([scan.rows.map(({ row }) => row.userId), scan.next]).toEqual([['user-11'], null]);
  });
});

/** Tests the limit (the share) of what one user's clients may advertise and report. */
import { describe, expect, it } from 'vitest';
import type { ReportedContext } from '../../src/core/contexts/context.ts';
import { FORGET_MS } from '../../src/core/limits.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { browserWindow, context, delta, report, snapshot } from '../contract/kit/contexts-model.ts';
import { admin, advertisement, connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice');

function bounded(guarantee: number, total: number) {
  return { shares: createShares(shareBounds({ advertised_bytes: { guarantee, total } })) };
}

function held({ core }: TestCore, userId = 'alice'): number {
  return core.shares.of(userId).held('advertised_bytes');
}

function large(contextId: string, chars: number): ReportedContext {
  return { ...context(contextId), metadata: JSON.stringify('x'.repeat(chars)) as ReportedContext['metadata'] };
}

async function shown({ core }: TestCore): Promise<string[]> {
  const { nodes } = await core.contexts.list(admin, {}, {});
  return nodes.map(({ contextId }) => contextId);
}

describe('advertisements and reports of clients', () => {
  it('count as long as they are held: they change with each report, and are released with the row', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, alice, { actions: [] });
    expect(held(at)).toBe(0);
    await session.advertise([{ ...advertisement('open'), description: 'd'.repeat(1000) }]);
    const advertised = held(at);
    expect(advertised).toBeGreaterThan(1000);
    await session.report(report(snapshot(large('a', 5000), large('b', 5000)), snapshot(browserWindow('w'))));
    const both = held(at);
    expect(both - advertised).toBeGreaterThan(10_000);
    await session.report(report(delta([], 'a')));
    expect(both - held(at)).toBeGreaterThan(5_000);
    await session.report(report(snapshot()));
    await session.report(report(null, snapshot()));
    expect(held(at)).toBe(advertised);
    await session.closed('client_closed');
    expect(held(at)).toBe(advertised);
    await at.clock.advance(FORGET_MS);
    await connect(at.core, user('bob'), { actions: [] });
    expect(at.core.shares.used('advertised_bytes')).toBe(0);
  });

  it('count once for an instance that resumes, and are released with one that is replaced', async () => {
    await using at = await testCore();
    const first = await connect(at.core, alice);
    await first.session.report(report(snapshot(large('a', 5000))));
    const before = held(at);
    await connect(at.core, alice);
    expect(held(at)).toBe(before);
    await first.session.closed('replaced');
    expect(held(at)).toBe(before);
    await connect(at.core, alice, { instanceId: 'i2' });
    expect(before - held(at)).toBeGreaterThan(5_000);
  });

  it('are refused beyond the share without a change, while others keep their guarantee', async () => {
    await using at = await testCore(bounded(10_000, 40_000));
    const { session } = await connect(at.core, alice, { actions: [] });
    await session.report(report(snapshot(large('a', 25_000))));
    const before = held(at);
    const refused = { code: 'share_exceeded', details: { share: 'advertised_bytes' } };
    await expect(session.report(report(delta([large('b', 5_000)], 'a')))).resolves.toBe('taken');
    await session.report(report(snapshot(large('a', 25_000))));
    await expect(session.report(report(delta([large('b', 5_000)])))).rejects.toMatchObject(refused);
    const actions = [{ ...advertisement('open'), description: 'd'.repeat(5_000) }];
    await expect(session.advertise(actions)).rejects.toMatchObject(refused);
    await expect(connect(at.core, alice, { clientId: 'other', actions })).rejects.toMatchObject(refused);
    expect(held(at)).toBe(before);
    expect(await shown(at)).toEqual(['a']);
    const bob = await connect(at.core, user('bob'), { actions: [] });
    expect(await bob.session.report(report(snapshot(large('c', 9_000))))).toBe('taken');
    // A smaller report is always accepted.
    expect(await session.report(report(snapshot(large('a', 10))))).toBe('taken');
  });

  it('do not count if the store did not take the report', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, alice);
    const before = held(at);
    await connect(at.core, alice, { instanceId: 'i2' });
    expect(await session.report(report(snapshot(large('a', 5000))))).toBe('fenced');
    expect(held(at)).toBe(before);
  });

  it.each([1, 2, 3, 4, 5])('have the same weight however the rows came about (seed %i)', async (seed) => {
    let state = seed;
    const random = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below;
    await using at = await testCore();
    await using once = await testCore();
    const { session } = await connect(at.core, alice);
    const rows = new Map<string, ReportedContext>();
    for (let round = 0; round < 60; round++) {
      const set = Array.from({ length: random(4) }, () => large(`c${random(10)}`, random(500)));
      const own = new Map(set.map((row) => [row.contextId, row]));
      const removed = [`c${random(10)}`, 'none'].filter((id) => !own.has(id));
      const isSnapshot = random(10) === 0;
      if (isSnapshot) rows.clear();
      else for (const id of removed) rows.delete(id);
      for (const [id, row] of own) rows.set(id, row);
      const part = isSnapshot ? snapshot(...own.values()) : delta([...own.values()], ...removed);
      await session.report(report(part));
    }
    const other = await connect(once.core, alice);
    await other.session.report(report(snapshot(...rows.values())));
    expect(held(at)).toBe(held(once));
  });
});

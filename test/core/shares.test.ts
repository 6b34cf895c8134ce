/**
 * Tests the rule by which users share bounded resources: what each user is guaranteed, may borrow from the others, and
 * may hold in total.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { holderOf } from '../../src/core/shares/holder.ts';
import { guaranteeBeside, RESERVE_PART, SHARE_BOUNDS } from '../../src/core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
const bounds = {
  links: { guarantee: 10, total: 100 },
  waits: { guarantee: 5, total: null },
} as const;

function shares(): Shares {
  return createShares(bounds);
}

describe('a share', () => {
  it('lends what others do not use, up to three quarters of the total', () => {
    const table = shares();
    const alice = table.of('alice');
    alice.claim('links', 75);
    expect(alice.refusal('links', 1)).toBe('share_exceeded');
    expect(table.used('links')).toBe(75);
    expect(table.full('links')).toBe(false);
  });

  it('serves a user within their guarantee until the total is used up', () => {
    const table = shares();
    table.of('alice').claim('links', 75);
    for (const user of ['bob', 'carol']) table.of(user).claim('links', 10);
    expect(table.of('bob').refusal('links', 1)).toBe('share_exceeded');
    table.of('dave').claim('links', 5);
    expect(table.full('links')).toBe(true);
    expect(table.of('erin').refusal('links', 5)).toBe('store_full');
    expect(table.of('dave').refusal('links', 1)).toBe('store_full');
    expect(table.of('alice').refusal('links', 1)).toBe('share_exceeded');
  });

  it('keeps a reserve beyond the total for users who hold little, and another for administrators', () => {
    const table = shares();
    table.of('alice').claim('links', 75);
    for (const user of ['bob', 'carol']) table.of(user).claim('links', 10);
    table.of('dave').claim('links', 5);
    // Of the reserve of 6, a user may hold what fits free² / 6, and always 1.
    expect(table.of('erin').refusal('links', 3)).toBe('store_full');
    table.of('erin').claim('links', 2);
    expect(table.of('erin').refusal('links', 1)).toBe('store_full');
    for (const user of ['frank', 'grace', 'heidi', 'ivan']) {
      expect(table.of(user).refusal('links', 3)).toBe('store_full');
      table.of(user).claim('links', 1);
    }
    expect(table.of('judy').refusal('links', 1)).toBe('store_full');
    const admin = table.of(holderOf({ kind: 'admin', name: 'ops', expiresAt: null }));
    admin.claim('links', 6);
    expect(admin.refusal('links', 1)).toBe('store_full');
    expect(table.used('links')).toBe(112);
  });

  it('leaves administrators one, however small the total', () => {
    const table = createShares({ links: { guarantee: 1, total: 1 } });
    table.of('alice').claim('links', 1);
    expect(table.of('bob').refusal('links', 1)).toBe('store_full');
    table.of(holderOf({ kind: 'admin', name: 'ops', expiresAt: null })).claim('links', 1);
  });

  it('never refuses a user what is guaranteed beside the others, whatever they took and released', () => {
    const total = fc.integer({ min: 16, max: 100_000 });
    const anyBound = total.chain((most) =>
      fc.record({ guarantee: fc.integer({ min: 1, max: most }), total: fc.constant(most) }),
    );
    // Amounts are parts of the total, so that claims of every size are tried, most of them as large as possible.
    const step = fc.record({ user: fc.nat(11), part: fc.integer({ min: 1, max: 1_000 }), greedy: fc.boolean() });
    fc.assert(
      fc.property(anyBound, fc.array(step, { maxLength: 80 }), (links, steps) => {
        const table = createShares({ links });
        const users = Array.from({ length: 12 }, (_, i) => table.of(`u${i}`));
        for (const { user, part, greedy } of steps) {
          const holdings = users[user];
          if (!holdings) continue;
          const amount = Math.max(1, Math.floor((links.total * part) / 1_000));
          if (holdings.refusal('links', amount) === null) holdings.claim('links', amount);
          else if (greedy) while (holdings.refusal('links', 1) === null) holdings.claim('links', 1);
          else holdings.release('links', Math.min(amount, holdings.held('links')));
          expect(table.used('links')).toBeLessThanOrEqual(links.total * (1 + RESERVE_PART));
          const holders = users.filter((one) => one.held('links') > 0);
          for (const one of users) {
            const others = holders.filter((other) => other !== one).length;
            const growth = guaranteeBeside(links, others) - one.held('links');
            if (growth > 0) expect(one.refusal('links', growth)).toBeNull();
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  it('guarantees links of users beside many who take all they can, by the defaults', () => {
    const beside = [0, 1, 5, 10, 20].map((others) => guaranteeBeside(SHARE_BOUNDS.links, others));
    expect(beside).toEqual([1_000, 1_000, 1_000, 57, 7]);
  });

  it('without a total refuses only beyond the guarantee', () => {
    const alice = shares().of('alice');
    alice.claim('waits', 5);
    expect(alice.refusal('waits', 1)).toBe('share_exceeded');
  });

  it('names itself in the refusal, and reserves nothing', () => {
    const alice = shares().of('alice');
    alice.claim('waits', 5);
    const refused = (): void => alice.claim('waits', 1);
    expect(refused).toThrow(CallboardError);
    expect(refused).toThrow(expect.objectContaining({ code: 'share_exceeded', details: { share: 'waits' } }));
    expect(alice.held('waits')).toBe(5);
  });

  it('knows which user is most over the guarantee', () => {
    const table = shares();
    table.of('alice').take('links', 11);
    table.of('bob').take('links', 20);
    table.of('carol').take('links', 10);
    expect([...table.over('links')].map(({ userId }) => userId).sort()).toEqual(['alice', 'bob']);
    expect(table.mostOver('links')?.userId).toBe('bob');
    table.of('bob').release('links', 10);
    expect(table.mostOver('links')?.userId).toBe('alice');
    table.of('alice').release('links', 1);
    expect(table.mostOver('links')).toBeNull();
  });

  it('counts with one object per user, however long a reference was kept without holding anything', () => {
    const table = shares();
    const early = table.of('alice');
    const late = table.of('alice');
    late.take('links', 3);
    early.take('links', 4);
    expect([early.held('links'), late.held('links'), table.of('alice').held('links')]).toEqual([7, 7, 7]);
    early.release('links', 7);
    expect([early.held('links'), late.held('links')]).toEqual([0, 0]);
  });

  it('keeps nothing after a query for a user who holds nothing', () => {
    const table = shares();
    const one = table.of('alice');
    one.refusal('links', 1);
    expect(table.of('alice')).not.toBe(one);
  });

  it('adds up, for every order of taking and releasing by several references', () => {
    const step = fc.record({
      user: fc.constantFrom('a', 'b', 'c'),
      reference: fc.nat(2),
      amount: fc.integer({ min: -8, max: 8 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const table = shares();
        const references = new Map(['a', 'b', 'c'].map((user) => [user, [0, 1, 2].map(() => table.of(user))]));
        const held = new Map<string, number>();
        for (const { user, reference, amount } of steps) {
          const before = held.get(user) ?? 0;
          const by = Math.max(amount, -before);
          const holdings = references.get(user)?.[reference];
          if (by >= 0) holdings?.take('links', by);
          else holdings?.release('links', -by);
          held.set(user, before + by);
          for (const [each, amounts] of held) expect(table.of(each).held('links')).toBe(amounts);
          expect(table.used('links')).toBe([...held.values()].reduce((sum, one) => sum + one, 0));
          const over = [...held].filter(([, one]) => one > 10).map(([each]) => each);
          expect([...table.over('links')].map(({ userId }) => userId).sort()).toEqual(over.sort());
        }
      }),
      { numRuns: 200 },
    );
  });
});

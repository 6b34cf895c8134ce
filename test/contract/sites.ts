/**
 * Defines the contract tests of the port SiteStore, which keeps the definitions of sites. Every backend must pass them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SITES_PER_USER } from '../../src/core/limits.ts';
import type { NewSite } from '../../src/core/sites/site-stores.ts';
import type { Bench, MakeBench } from './kit/bench.ts';

export const BOARD: NewSite = {
  userId: 'alice',
  siteId: 'board',
  mode: 'cooperative',
  title: 'A board',
  eventNames: ['site_changed'],
  actions: ['task.add'],
  capabilityProfile: { actionInvocation: true, sharing: true },
  clientId: 'desk',
};

const ALL = { first: 1000, after: null };

/** Defines the tests that every SiteStore must pass. */
export function siteContract(name: string, make: MakeBench): void {
  describe(`definitions of sites, ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());

    const names = async (userId: string | null): Promise<string[]> => {
      const { rows } = await bench.backend.sites.list(userId, ALL);
      return rows.map(({ row }) => `${row.userId}/${row.siteId}`);
    };

    it('keeps a definition by its owner and id', async () => {
      const { sites } = bench.backend;
      expect(await sites.put(BOARD)).toEqual({ kind: 'put', site: { ...BOARD, registeredAt: bench.now() } });
      const keys = [
        { userId: 'bob', siteId: 'board' },
        { userId: 'alice', siteId: 'board' },
        { userId: 'alice', siteId: 'other' },
      ];
      const [foreign, own, absent] = await sites.get(keys);
      expect(own).toEqual({ ...BOARD, registeredAt: bench.now() });
      expect([foreign, absent]).toEqual([null, null]);
    });

    it('replaces the whole definition and keeps the time of the first registration', async () => {
      const { sites } = bench.backend;
      const since = bench.now();
      await sites.put(BOARD);
      await bench.advance(1000);
      const next: NewSite = { ...BOARD, title: null, eventNames: [], actions: [], clientId: 'other', mode: 'watched' };
      expect(await sites.put(next)).toEqual({ kind: 'put', site: { ...next, registeredAt: since } });
      await sites.remove(BOARD);
      expect(await sites.put(BOARD)).toMatchObject({ site: { registeredAt: since + 1000 } });
    });

    it('bounds the sites of each user separately, and never refuses an existing one', async () => {
      const { sites } = bench.backend;
      for (let i = 0; i < SITES_PER_USER; i++) await sites.put({ ...BOARD, siteId: `s${i}` });
      expect(await sites.put(BOARD)).toEqual({ kind: 'full' });
      expect(await sites.get([BOARD])).toEqual([null]);
      expect(await sites.put({ ...BOARD, siteId: 's5', title: 'again' })).toMatchObject({ kind: 'put' });
      expect(await sites.put({ ...BOARD, userId: 'bob' })).toMatchObject({ kind: 'put' });
      await sites.remove({ userId: 'alice', siteId: 's7' });
      expect(await sites.put(BOARD)).toMatchObject({ kind: 'put' });
    });

    it('removes once', async () => {
      const { sites } = bench.backend;
      await sites.put(BOARD);
      expect(await sites.remove({ userId: 'bob', siteId: 'board' })).toBeNull();
      expect(await sites.remove(BOARD)).toMatchObject({ site: BOARD, closed: [] });
      expect(await sites.remove(BOARD)).toBeNull();
      expect(await sites.get([BOARD])).toEqual([null]);
    });

    it('lists in order of owner and id, for one owner or for all, by position', async () => {
      const { sites } = bench.backend;
      for (const [userId, siteId] of [
        ['bob', 'b'],
        ['alice', 'z'],
        ['alice', 'a'],
        ['alice-b', 'a'],
      ] as const)
        await sites.put({ ...BOARD, userId, siteId });
      expect(await names(null)).toEqual(['alice/a', 'alice/z', 'alice-b/a', 'bob/b']);
      expect(await names('alice')).toEqual(['alice/a', 'alice/z']);
      expect(await names('nobody')).toEqual([]);
      const seen: string[] = [];
      for (let after: readonly string[] | null = null, more = true; more;) {
        const scan = await sites.list(null, { first: 1, after });
        seen.push(...scan.rows.map(({ row }) => `${row.userId}/${row.siteId}`));
        after = scan.next;
        more = after !== null;
        // A new row before the position of the cursor neither repeats nor hides an existing row.
        if (seen.length === 2) await sites.put({ ...BOARD, userId: 'alice', siteId: 'b' });
      }
      expect(seen).toEqual(['alice/a', 'alice/z', 'alice-b/a', 'bob/b']);
    });

    it('returns the first sites of each requested user, and their total', async () => {
      const { sites } = bench.backend;
      for (const siteId of ['c', 'a', 'b']) await sites.put({ ...BOARD, siteId });
      const [bob, alice] = await sites.ofUsers(['bob', 'alice'], 2);
      expect(bob).toEqual({ total: 0, rows: [] });
      expect([alice?.total, alice?.rows.map(({ siteId }) => siteId)]).toEqual([3, ['a', 'b']]);
    });
  });
}

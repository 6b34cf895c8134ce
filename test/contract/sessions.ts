/**
 * Defines the contract tests of the port SessionStore: grants, expiry and limits of site sessions. Every backend must
 * pass them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  GRANTS_PER_SESSION,
  SESSION_KEPT_MS,
  SESSION_TICKETS,
  SESSION_TICKETS_REDEEMED,
  SESSIONS_PER_SITE,
} from '../../src/core/limits.ts';
import type { SiteSession } from '../../src/core/sites/site-session.ts';
import type { NewGrant, NewSession } from '../../src/core/sites/site-stores.ts';
import { type Bench, inWaves, type MakeBench } from './kit/bench.ts';
import { BOARD } from './sites.ts';

const HOUR = 3600_000;

/** Defines the tests that every SessionStore must pass. */
export function sessionContract(name: string, make: MakeBench): void {
  describe(`sessions of sites, ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
      await bench.backend.sites.put(BOARD);
    });
    afterEach(() => bench.close());

    /** Returns an id or a digest that begins with the prefix of its owner. */
    const led = (text: string, userId = 'alice'): string => bench.backend.sessions.prefixOf(userId) + text;
    const grant = (grantId: string, over: Partial<NewGrant> = {}, userId = 'alice'): NewGrant => ({
      ...{ grantId, parentId: null, events: null, actions: ['task.add'], share: true, ttlMs: null },
      tokenHash: led(`hash-${grantId}`, userId),
      ...over,
    });
    const opening = (name: string, over: Partial<NewSession> = {}): NewSession => ({
      ...{ userId: 'alice', siteId: 'board', sessionId: led(name, over.userId), ttlMs: HOUR },
      grant: grant(`${name}-root`, {}, over.userId),
      ...over,
    });
    const open = async (sessionId: string, over: Partial<NewSession> = {}): Promise<SiteSession> => {
      const result = await bench.backend.sessions.open(opening(sessionId, over));
      return result.kind === 'opened' ? result.session : Promise.reject(new Error(result.kind));
    };
    const read = async (sessionId: string): Promise<SiteSession | null> =>
      (await bench.backend.sessions.get([led(sessionId)]))[0] ?? null;
    const add = (grantId: string, over: Partial<NewGrant> = {}) =>
      bench.backend.sessions.addGrant(led('s1'), grant(grantId, over));
    const ids = async (): Promise<string[]> => {
      const { rows } = await bench.backend.sessions.list(BOARD, { first: 1000, after: null });
      return rows.map(({ row }) => row.sessionId.slice(led('').length));
    };

    it('opens a session with its first grant, for an existing site', async () => {
      const now = bench.now();
      const session = await open('s1');
      expect(session).toEqual({
        ...{ userId: 'alice', siteId: 'board', sessionId: led('s1') },
        ...{ openedAt: now, expiresAt: now + HOUR, closedAt: null },
        grants: [
          {
            ...{ grantId: 's1-root', parentId: null, events: null, actions: ['task.add'], share: true },
            ...{ grantedAt: now, expiresAt: now + HOUR, revokedAt: null },
          },
        ],
      });
      expect(await bench.backend.sessions.get([led('none'), led('s1'), 'none'])).toEqual([null, session, null]);
      expect(await bench.backend.sessions.open(opening('s2', { siteId: 'other' }))).toEqual({ kind: 'gone' });
      expect(await bench.backend.sessions.open(opening('s2', { userId: 'bob' }))).toEqual({ kind: 'gone' });
    });

    it('bounds the open sessions of a site', async () => {
      await inWaves(SESSIONS_PER_SITE, 100, (i) => open(`s${i}`, i === 0 ? { ttlMs: 1000 } : {}));
      expect(await bench.backend.sessions.open(opening('more'))).toEqual({ kind: 'full' });
      expect(await read('more')).toBeNull();
      await bench.backend.sessions.close(led('s1'));
      await open('after-close');
      expect(await bench.backend.sessions.open(opening('more'))).toEqual({ kind: 'full' });
      await bench.advance(1000);
      await open('after-expiry');
    });

    it('keeps no more ended sessions than may be open', async () => {
      for (let i = 0; i < SESSIONS_PER_SITE + 5; i++) {
        await open(`s${String(i).padStart(5, '0')}`);
        await bench.backend.sessions.close(led(`s${String(i).padStart(5, '0')}`));
      }
      const known = await bench.backend.sessions.list(BOARD, { first: 1000, after: null });
      expect(known.rows[0]?.row.sessionId).toBe(led('s00005'));
      expect(await bench.backend.sessions.findByToken(led('hash-s00000-root'))).toBeNull();
    });

    it('closes once, and answers the ended session for an hour', async () => {
      await open('s1');
      const at = bench.now();
      expect(await bench.backend.sessions.close(led('s1'))).toMatchObject({ closedAt: at });
      await bench.advance(1000);
      expect(await bench.backend.sessions.close(led('s1'))).toMatchObject({ closedAt: at });
      await bench.advance(SESSION_KEPT_MS - 2000);
      expect(await read('s1')).toMatchObject({ closedAt: at });
      await bench.advance(1250);
      expect([await read('s1'), await ids()]).toEqual([null, []]);
      expect(await bench.backend.sessions.findByToken(led('hash-s1-root'))).toBeNull();
      expect(await bench.backend.sessions.close(led('s1'))).toBeNull();
    });

    it('answers an expired session for an hour', async () => {
      await open('s1', { ttlMs: 1000 });
      await bench.advance(1000 + SESSION_KEPT_MS - 1000);
      expect(await read('s1')).toMatchObject({ closedAt: null });
      await bench.advance(1250);
      expect(await read('s1')).toBeNull();
    });

    it('closes the open sessions of a site with it, and no others', async () => {
      await bench.backend.sites.put({ ...BOARD, siteId: 'other' });
      await open('s1');
      await open('s2');
      await open('s3', { ttlMs: 1000 });
      await open('o1', { siteId: 'other' });
      await bench.backend.sessions.close(led('s2'));
      await bench.advance(1000);
      const removed = await bench.backend.sites.remove(BOARD);
      expect(removed?.closed).toEqual([led('s1')]);
      expect([(await read('s1'))?.closedAt, (await read('o1'))?.closedAt]).toEqual([bench.now(), null]);
      await bench.backend.sites.put(BOARD);
      expect((await read('s1'))?.closedAt).not.toBeNull();
    });

    it('gives grants that end with their parent, and no later', async () => {
      await open('s1');
      const now = bench.now();
      expect(await add('g1', { parentId: 's1-root', ttlMs: 1000, share: false })).toMatchObject({
        kind: 'added',
        grant: { grantId: 'g1', parentId: 's1-root', share: false, expiresAt: now + 1000 },
      });
      expect(await add('g2', { parentId: 'g1', ttlMs: HOUR * 5 })).toMatchObject({ grant: { expiresAt: now + 1000 } });
      expect(await add('g3', { parentId: 'g1' })).toMatchObject({ grant: { expiresAt: now + 1000 } });
      expect(await add('g4', { ttlMs: HOUR * 5 })).toMatchObject({ grant: { expiresAt: now + HOUR } });
      await bench.advance(1000);
      expect(await add('g5', { parentId: 'g1' })).toEqual({ kind: 'gone' });
      expect(await add('g5', { parentId: 'nobody' })).toEqual({ kind: 'gone' });
      expect((await read('s1'))?.grants.map(({ grantId }) => grantId)).toEqual(['s1-root', 'g1', 'g2', 'g3', 'g4']);
    });

    it('gives no grant in a session that has ended', async () => {
      await open('s1', { ttlMs: 1000 });
      await open('s2');
      await bench.backend.sessions.close(led('s2'));
      expect(await bench.backend.sessions.addGrant(led('s2'), grant('g1'))).toEqual({ kind: 'gone' });
      expect(await bench.backend.sessions.addGrant(led('none'), grant('g1'))).toEqual({ kind: 'gone' });
      await bench.advance(1000);
      expect(await add('g1')).toEqual({ kind: 'gone' });
    });

    it('bounds the live grants, and forgets an ended one when its slot is needed', async () => {
      await open('s1');
      await add('short', { ttlMs: 1000 });
      for (let i = 2; i < GRANTS_PER_SESSION; i++) await add(`g${i}`);
      expect(await add('more')).toEqual({ kind: 'full' });
      await bench.backend.sessions.revokeGrant(led('s1'), 'g7');
      expect(await add('more')).toMatchObject({ kind: 'added' });
      expect(await bench.backend.sessions.findByToken(led('hash-g7'))).toBeNull();
      expect(await bench.backend.sessions.findByToken(led('hash-g8'))).toMatchObject({ grant: { grantId: 'g8' } });
      expect(await add('again')).toEqual({ kind: 'full' });
      await bench.advance(1000);
      expect(await add('again')).toMatchObject({ kind: 'added' });
      expect((await read('s1'))?.grants).toHaveLength(GRANTS_PER_SESSION);
    });

    it('revokes a grant with all its descendants, once', async () => {
      await open('s1');
      await add('a');
      await add('a1', { parentId: 'a' });
      await add('a2', { parentId: 'a' });
      await add('a11', { parentId: 'a1' });
      await add('b');
      const at = bench.now();
      expect(await bench.backend.sessions.revokeGrant(led('s1'), 'a1')).toEqual(['a1', 'a11']);
      await bench.advance(1000);
      expect(await bench.backend.sessions.revokeGrant(led('s1'), 'a')).toEqual(['a', 'a2']);
      expect(await bench.backend.sessions.revokeGrant(led('s1'), 'a')).toEqual([]);
      expect(await bench.backend.sessions.revokeGrant(led('s1'), 'none')).toBeNull();
      expect(await bench.backend.sessions.revokeGrant(led('none'), 'a')).toBeNull();
      const session = await read('s1');
      expect(session?.grants.map(({ grantId, revokedAt }) => [grantId, revokedAt])).toEqual([
        ['s1-root', null],
        ['a', at + 1000],
        ['a1', at],
        ['a2', at + 1000],
        ['a11', at],
        ['b', null],
      ]);
      expect(await add('late', { parentId: 'a11' })).toEqual({ kind: 'gone' });
      expect(await bench.backend.sessions.findByToken(led('hash-a11'))).toMatchObject({ grant: { revokedAt: at } });
    });

    it('finds a grant by the digest of its token only', async () => {
      const session = await open('s1');
      expect(await bench.backend.sessions.findByToken(led('hash-s1-root'))).toEqual({
        session,
        grant: session.grants[0],
      });
      expect(await bench.backend.sessions.findByToken(led('hash'))).toBeNull();
    });

    it('redeems a ticket for the first time within its time, also under concurrent requests', async () => {
      await open('s1');
      const { sessions } = bench.backend;
      const ticket = { sessionId: led('s1'), grantId: 's1-root', holderExpiresAt: 5 };
      expect(await sessions.putTicket(led('t1'), { ...ticket, ttlMs: 30_000 })).toEqual({
        kind: 'put',
        expiresAt: bench.now() + 30_000,
      });
      await sessions.putTicket(led('t2'), { ...ticket, ttlMs: 30_000 });
      const redeemed = await Promise.all([1, 2, 3, 4].map(() => sessions.redeemTicket(led('t1'))));
      expect(redeemed).toEqual([ticket, ticket, ticket, ticket]);
      expect(await sessions.redeemTicket(led('none'))).toBeNull();
      await bench.advance(30_000);
      expect(await sessions.redeemTicket(led('t2'))).toBeNull();
      expect(await sessions.redeemTicket(led('t2'))).toBeNull();
    });

    it('redeems it again for as long as its session is answered', async () => {
      await open('s1', { ttlMs: HOUR });
      const { sessions } = bench.backend;
      const ticket = { sessionId: led('s1'), grantId: 's1-root', holderExpiresAt: null };
      await sessions.putTicket(led('t1'), { ...ticket, ttlMs: 30_000 });
      await sessions.redeemTicket(led('t1'));
      for (let hour = 0; hour < 2; hour++) {
        await bench.advance(HOUR - 1000);
        expect(await sessions.redeemTicket(led('t1'))).toEqual(ticket);
      }
      await bench.advance(SESSION_KEPT_MS);
      expect(await sessions.redeemTicket(led('t1'))).toBeNull();
    });

    it('bounds the redeemed tickets of a session: the one redeemed longest ago is dropped', async () => {
      await open('s1');
      const { sessions } = bench.backend;
      const ticket = { sessionId: led('s1'), grantId: 's1-root', holderExpiresAt: null, ttlMs: 30_000 };
      const redeem = (n: number) => sessions.redeemTicket(led(`t${n}`));
      await inWaves(SESSION_TICKETS_REDEEMED, SESSION_TICKETS / 2, async (n) => {
        await sessions.putTicket(led(`t${n}`), ticket);
        await redeem(n);
      });
      expect(await redeem(0)).not.toBeNull();
      await sessions.putTicket(led('t-1'), ticket);
      expect(await redeem(-1)).not.toBeNull();
      expect([await redeem(1), (await redeem(0)) !== null, (await redeem(2)) !== null]).toEqual([null, true, true]);
    });

    it('bounds the unused tickets of a session, and gives none in an ended session', async () => {
      await open('s1');
      const { sessions } = bench.backend;
      const ticket = { sessionId: led('s1'), grantId: 's1-root', holderExpiresAt: null, ttlMs: 30_000 };
      for (let i = 0; i < SESSION_TICKETS; i++) await sessions.putTicket(led(`t${i}`), ticket);
      expect(await sessions.putTicket(led('more'), ticket)).toEqual({ kind: 'full' });
      await sessions.redeemTicket(led('t3'));
      expect(await sessions.putTicket(led('more'), ticket)).toMatchObject({ kind: 'put' });
      await bench.advance(30_000);
      expect(await sessions.putTicket(led('later'), ticket)).toMatchObject({ kind: 'put' });
      await sessions.close(led('s1'));
      expect(await sessions.putTicket(led('late'), ticket)).toEqual({ kind: 'gone' });
      expect(await sessions.putTicket(led('late'), { ...ticket, sessionId: led('none') })).toEqual({ kind: 'gone' });
    });

    it('lists the sessions of one site by position', async () => {
      await bench.backend.sites.put({ ...BOARD, userId: 'bob' });
      await open('b1', { userId: 'bob' });
      for (const sessionId of ['s1', 's2', 's3']) await open(sessionId);
      const first = await bench.backend.sessions.list(BOARD, { first: 2, after: null });
      expect(first.rows.map(({ row }) => row.sessionId)).toEqual([led('s1'), led('s2')]);
      const rest = await bench.backend.sessions.list(BOARD, { first: 2, after: first.next });
      expect([rest.rows.map(({ row }) => row.sessionId), rest.next]).toEqual([[led('s3')], null]);
    });
  });
}

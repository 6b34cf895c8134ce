/** Tests sites in core: definitions, sessions, sharing and tickets. */
import { describe, expect, it, vi } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Principal } from '../../src/core/auth/principal.ts';
import { SESSION_TTL_SECONDS, SESSION_WATCH_MS, TICKET_MS } from '../../src/core/limits.ts';
import type { SiteDefinition } from '../../src/core/sites/site-requests.ts';
import { fromJson, toJson } from '../../src/core/json.ts';
import { settle } from '../kit/clock.ts';
import { admin, advertisement, connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const bob = user('bob');
const BOARD: SiteDefinition = {
  siteId: 'board',
  clientId: 'desk',
  title: 'A board',
  eventNames: ['changed', 'closed'],
  actions: ['add', 'drop'],
  capabilityProfile: { actionInvocation: true, sharing: true },
};

async function code(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    (value) => (value === null ? null : 'done'),
    (error: { code?: unknown }) => error.code,
  );
}

/** Opens a core with alice's board and a session of it. Also returns the holder of the session's first grant. */
async function board(over: Partial<SiteDefinition> = {}, options: Parameters<typeof testCore>[0] = {}) {
  const made = await testCore(options);
  const { core } = made;
  await core.sites.register(alice, { ...BOARD, ...over });
  const opened = await core.sites.open(alice, 'board', {});
  if (!opened) throw new Error('not opened');
  const sessionId = opened.view.session.sessionId;
  const holder = await core.sites.holder(opened.token);
  return { ...made, sessionId, opened, holder, [Symbol.asyncDispose]: () => made[Symbol.asyncDispose]() };
}

function host(core: TestCore['core'], over: Parameters<typeof connect>[2] = {}, requester = alice) {
  const actions = ['add', 'drop', 'secret'].map(advertisement);
  return connect(core, requester, { clientId: 'desk', clientType: 'console', actions, ...over });
}

async function share(at: Awaited<ReturnType<typeof board>>, requester: Principal, request = {}) {
  const given = await at.core.sites.share(requester, at.sessionId, request);
  if (!given) throw new Error('not shared');
  return { ...given, holder: await at.core.sites.holder(given.token) };
}

function publish({ core }: Pick<TestCore, 'core'>, name: string, data: unknown = null, requester = alice) {
  return core.ingest.ingestCooperativeSiteMessage(requester, {
    ...{ kind: 'event', streamSuffix: 'sites/board/events', clientId: 'desk', instanceId: 'i1' },
    payload: toJson({ name, data }),
  });
}

describe('a definition', () => {
  it('is written by its owner with the scope host, and read with invoke', async () => {
    await using at = await board();
    const { sites } = at.core;
    for (const [requester, expected] of [
      [null, 'unauthenticated'],
      [admin, 'forbidden'],
      [at.holder, 'forbidden'],
      [user('alice', 'invoke', 'connect'), 'forbidden'],
      [user('alice', 'host'), 'done'],
    ] as const) {
      expect(await code(sites.register(requester, BOARD))).toBe(expected);
      expect(await code(sites.open(requester, 'board', {}))).toBe(expected);
    }
    for (const [requester, expected] of [
      [null, 'unauthenticated'],
      [at.holder, 'forbidden'],
      [user('alice', 'host', 'connect'), 'forbidden'],
      [user('alice', 'invoke'), 'done'],
      [user('bob', 'invoke'), null],
    ] as const)
      expect(await code(sites.get(requester, null, 'board'))).toBe(expected);
    expect(await code(sites.remove(at.holder, 'board'))).toBe('forbidden');
    expect(await sites.remove(bob, 'board')).toBeNull();
    expect(await sites.remove(alice, 'board')).toEqual({ siteId: 'board', closedSessions: 2 });
    expect(await sites.remove(alice, 'board')).toBeNull();
  });

  it('is read by an administrator who names its owner', async () => {
    await using at = await board();
    const { sites } = at.core;
    expect(await sites.get(admin, 'alice', 'board')).toMatchObject({ userId: 'alice', seen: 'whole' });
    expect(await sites.get(admin, 'bob', 'board')).toBeNull();
    expect(await code(sites.get(admin, null, 'board'))).toBe('invalid_argument');
    expect((await sites.list(admin, null, {})).nodes).toHaveLength(1);
    expect((await sites.list(admin, 'bob', {})).nodes).toEqual([]);
    expect((await sites.list(alice, null, {})).nodes).toHaveLength(1);
    expect((await sites.list(bob, null, {})).nodes).toEqual([]);
    expect(await code(sites.list(bob, 'alice', {}))).toBe('not_found');
  });

  it('is refused with every fault at once', async () => {
    await using at = await board();
    const wrong = { ...BOARD, title: 'x'.repeat(257), eventNames: ['ok', 'error'], actions: ['1'] };
    const refused = await at.core.sites.register(alice, wrong).catch((error) => error);
    expect(refused.details.errors.map(({ parameter }: { parameter: string }) => parameter)).toEqual([
      'title',
      'event_names[1]',
      'actions[0]',
    ]);
    for (const siteId of ['.', '..', '', 'a/b']) {
      expect(await code(at.core.sites.register(alice, { ...BOARD, siteId }))).toBe('invalid_argument');
      expect(await code(at.core.sites.get(alice, null, siteId))).toBe('invalid_argument');
    }
    const many = Array.from({ length: 257 }, (_, i) => `a${i}`);
    expect(await code(at.core.sites.register(alice, { ...BOARD, actions: many }))).toBe('invalid_argument');
  });

  it('reports whether its host is connected, by a link whose token had the scope host', async () => {
    await using at = await board();
    const connected = async () => (await at.core.sites.get(alice, null, 'board'))?.hostConnected;
    expect(await connected()).toBe(false);
    const plain = await host(at.core, {}, user('alice', 'connect', 'invoke'));
    expect(await connected()).toBe(false);
    await plain.session.closed('client_closed');
    const link = await host(at.core);
    expect(await connected()).toBe(true);
    expect((await at.core.sites.list(admin, null, {})).nodes[0]?.hostConnected).toBe(true);
    await link.session.closed('client_closed');
    expect(await connected()).toBe(false);
    await host(at.core, { clientId: 'other' });
    expect(await connected()).toBe(false);
  });

  it('is in the summary of its owner, with one store read for all users', async () => {
    await using at = await board();
    const [none, one] = await at.core.sites.ofUsers(admin, ['bob', 'alice'], 10);
    expect([none?.total, one?.total, one?.nodes[0]?.siteId]).toEqual([0, 1, 'board']);
  });
});

describe('a session', () => {
  it('opens for an hour with everything that the site allows', async () => {
    await using at = await board();
    const { view, grant } = at.opened;
    expect(view).toMatchObject({ state: 'suspended', subscribers: 0, site: { siteId: 'board', seen: 'whole' } });
    expect(grant).toMatchObject({ events: null, actions: ['add', 'drop'], share: true, parentId: null });
    expect([view.session.expiresAt, grant.expiresAt]).toEqual([at.clock.now() + 3600_000, at.clock.now() + 3600_000]);
    expect(at.opened.token).toMatch(/^cbg_[A-Za-z0-9_-]{43}$/);
    expect(JSON.stringify(await at.core.sites.session(alice, at.sessionId))).not.toContain(at.opened.token);
  });

  it('opens for as long and with as little as requested, never with more than the site allows', async () => {
    await using at = await board({ capabilityProfile: { actionInvocation: true } });
    const open = (request: object) => at.core.sites.open(alice, 'board', request);
    const opened = await open({ ttlSeconds: 60, events: ['closed'], actions: [] });
    expect(opened?.grant).toMatchObject({ events: ['closed'], actions: [], share: false });
    expect(opened?.grant.expiresAt).toBe(at.clock.now() + 60_000);
    expect(await code(open({ actions: ['add', 'other'] }))).toBe('site_action_denied');
    expect(await code(open({ events: ['other'] }))).toBe('forbidden');
    for (const ttlSeconds of [0, -1, 1.5, SESSION_TTL_SECONDS.max + 1])
      expect(await code(open({ ttlSeconds }))).toBe('invalid_argument');
    expect(await code(open({ events: ['error'] }))).toBe('invalid_argument');
    expect(await at.core.sites.open(bob, 'board', {})).toBeNull();
    expect(await at.core.sites.open(alice, 'other', {})).toBeNull();
  });

  it('shows its holder what of the site it may use, and nothing of its owner, host or other grants', async () => {
    await using at = await board();
    const narrow = await share(at, alice, { events: ['closed'], actions: ['drop'] });
    const view = await at.core.sites.session(narrow.holder, at.sessionId);
    expect(view).toMatchObject({
      site: { title: 'A board', eventNames: ['closed'], actions: ['drop'], seen: 'granted' },
      grant: { grantId: narrow.grant.grantId },
      grants: null,
      subscribers: null,
    });
    const owner = await at.core.sites.session(alice, at.sessionId);
    expect(owner?.grants?.map(({ grantId }) => grantId)).toEqual([at.opened.grant.grantId, narrow.grant.grantId]);
    expect(await at.core.sites.session(admin, at.sessionId)).toMatchObject({ grant: null, site: { seen: 'whole' } });
  });

  it('is absent for everybody else', async () => {
    await using at = await board();
    const { sites } = at.core;
    const foreign = await sites.register(bob, BOARD).then(() => sites.open(bob, 'board', {}));
    const stranger = await sites.holder(foreign?.token ?? '');
    const { sessionId } = at;
    for (const requester of [bob, stranger]) {
      expect(await sites.session(requester, sessionId)).toBeNull();
      expect(await sites.share(requester, sessionId, {})).toBeNull();
      expect(await sites.revoke(requester, sessionId, at.opened.grant.grantId)).toBeNull();
      expect(await sites.ticket(requester, sessionId)).toBeNull();
      expect(await sites.subscribe(requester, sessionId, null)).toBeNull();
      expect(await sites.invoke(requester, sessionId, { action: 'add', params: null })).toBeNull();
    }
    expect(await sites.close(bob, sessionId)).toBeNull();
    expect(await code(sites.close(stranger, sessionId))).toBe('forbidden');
    for (const absent of ['none', '', 'a/b', 'x'.repeat(500)]) expect(await sites.session(alice, absent)).toBeNull();
    expect(await sites.session(at.holder, sessionId)).toMatchObject({ state: 'suspended' });
  });

  it('can be read, not used, by an administrator', async () => {
    await using at = await board();
    const { sites } = at.core;
    const operations = [
      sites.share(admin, at.sessionId, {}),
      sites.close(admin, at.sessionId),
      sites.revoke(admin, at.sessionId, at.opened.grant.grantId),
      sites.ticket(admin, at.sessionId),
      sites.subscribe(admin, at.sessionId, null),
      sites.invoke(admin, at.sessionId, { action: 'add', params: null }),
    ];
    expect(await Promise.all(operations.map(code))).toEqual(operations.map(() => 'forbidden'));
  });

  it('is active while its host is connected, and reports how it ended', async () => {
    await using at = await board();
    const state = async () => (await at.core.sites.session(alice, at.sessionId))?.state;
    const link = await host(at.core);
    expect(await state()).toBe('active');
    await link.session.closed('client_closed');
    expect(await state()).toBe('suspended');
    expect((await at.core.sites.close(alice, at.sessionId))?.state).toBe('closed');
    expect(await state()).toBe('closed');
    const other = await at.core.sites.open(alice, 'board', { ttlSeconds: 10 });
    await at.clock.advance(10_000);
    expect((await at.core.sites.session(alice, other?.view.session.sessionId ?? ''))?.state).toBe('expired');
  });

  it('stays closed when its site is registered again', async () => {
    await using at = await board();
    await at.core.sites.remove(alice, 'board');
    expect(await at.core.sites.session(alice, at.sessionId)).toMatchObject({ state: 'closed', site: null });
    await at.core.sites.register(alice, BOARD);
    expect(await at.core.sites.session(alice, at.sessionId)).toMatchObject({ state: 'closed' });
  });
});

describe('sharing', () => {
  it('gives a subset, down a chain, and revoking revokes the rest of the chain', async () => {
    await using at = await board();
    const { sites } = at.core;
    const first = await share(at, at.holder, { actions: ['add'], share: true, ttlSeconds: 100 });
    const second = await share(at, first.holder, { events: ['closed'] });
    expect(second.grant).toMatchObject({ parentId: first.grant.grantId, events: ['closed'], actions: ['add'] });
    expect(second.grant.expiresAt).toBe(at.clock.now() + 100_000);
    expect(await code(sites.share(second.holder, at.sessionId, {}))).toBe('forbidden');
    expect(await code(sites.share(first.holder, at.sessionId, { actions: ['drop'] }))).toBe('site_action_denied');
    expect(await sites.revoke(second.holder, at.sessionId, first.grant.grantId)).toBeNull();
    expect(await sites.revoke(at.holder, at.sessionId, first.grant.grantId)).toEqual([
      first.grant.grantId,
      second.grant.grantId,
    ]);
    expect(await code(sites.holder(second.token))).toBe('unauthenticated');
    expect(await code(sites.session(first.holder, at.sessionId))).toBe('unauthenticated');
    const add = { action: 'add', params: null };
    expect(await code(sites.invoke(first.holder, at.sessionId, add))).toBe('unauthenticated');
    expect(await code(sites.holder(at.opened.token))).toBe('done');
  });

  it('needs the profile to allow it, for the owner too', async () => {
    await using at = await board({ capabilityProfile: { actionInvocation: true } });
    for (const requester of [alice, at.holder])
      expect(await code(at.core.sites.share(requester, at.sessionId, {}))).toBe('site_capability_denied');
  });

  it('never exceeds a definition that was reduced', async () => {
    await using at = await board();
    await at.core.sites.register(alice, { ...BOARD, actions: ['drop'] });
    expect((await share(at, at.holder)).grant.actions).toEqual(['drop']);
    expect(await code(at.core.sites.share(at.holder, at.sessionId, { actions: ['add'] }))).toBe('site_action_denied');
  });

  it('ends with the grant’s own expiry', async () => {
    await using at = await board();
    const brief = await share(at, at.holder, { ttlSeconds: 5 });
    await at.clock.advance(4_999);
    expect(await code(at.core.sites.holder(brief.token))).toBe('done');
    await at.clock.advance(1);
    expect(await code(at.core.sites.holder(brief.token))).toBe('unauthenticated');
    expect(await code(at.core.sites.session(brief.holder, at.sessionId))).toBe('unauthenticated');
  });
});

describe('a ticket', () => {
  it("represents its requester in its session if redeemed within 30 seconds, for as long as the requester's grant", async () => {
    await using at = await board();
    const { sites } = at.core;
    const take = async (requester: Principal) => (await sites.ticket(requester, at.sessionId))?.ticket ?? '';
    const ticket = await take(at.holder);
    const redeem = async (given: string) => (await sites.redeem(at.sessionId, given)).principal;
    expect(await redeem(ticket)).toEqual(at.holder);
    await at.clock.advance(10 * TICKET_MS);
    expect(await redeem(ticket)).toEqual(at.holder);
    expect(await redeem(await take(alice))).toEqual({
      kind: 'user',
      userId: 'alice',
      scopes: new Set(['invoke']),
      expiresAt: null,
    });
    const other = (await sites.open(alice, 'board', {}))?.view.session.sessionId ?? '';
    expect(await code(sites.redeem(other, await take(at.holder)))).toBe('unauthenticated');
    const late = await take(at.holder);
    await at.clock.advance(TICKET_MS);
    expect(await code(sites.redeem(at.sessionId, late))).toBe('unauthenticated');
    for (const wrong of ['', 'x', at.opened.token]) {
      expect(await code(sites.redeem(at.sessionId, wrong))).toBe('unauthenticated');
    }
    expect(await code(sites.holder(await take(at.holder)))).toBe('unauthenticated');
  });

  it('has one stream at a time: a later one replaces it, once, and an ended one is removed', async () => {
    await using at = await board();
    const { sites } = at.core;
    const ticket = (await sites.ticket(at.holder, at.sessionId))?.ticket ?? '';
    const other = (await sites.ticket(at.holder, at.sessionId))?.ticket ?? '';
    const replaced: string[] = [];
    const occupy = async (name: string, given = ticket) =>
      (await sites.redeem(at.sessionId, given)).occupy(() => void replaced.push(name));
    await occupy('first');
    await occupy('another ticket', other);
    const leave = await occupy('second');
    expect(replaced).toEqual(['first']);
    leave();
    await occupy('third');
    expect(replaced).toEqual(['first']);
    await occupy('fourth');
    expect(replaced).toEqual(['first', 'third']);
  });

  it('is refused once its grant is revoked or its holder’s token has expired', async () => {
    await using at = await board();
    const { sites } = at.core;
    const given = await share(at, alice);
    const ticket = await sites.ticket(given.holder, at.sessionId);
    await sites.redeem(at.sessionId, ticket?.ticket ?? '');
    await sites.revoke(alice, at.sessionId, given.grant.grantId);
    expect(await code(sites.redeem(at.sessionId, ticket?.ticket ?? ''))).toBe('unauthenticated');
    const brief = { ...alice, expiresAt: at.clock.now() + 1000 };
    const owned = await sites.ticket(brief, at.sessionId);
    await sites.redeem(at.sessionId, owned?.ticket ?? '');
    await at.clock.advance(1000);
    expect(await code(sites.redeem(at.sessionId, owned?.ticket ?? ''))).toBe('unauthenticated');
  });
});

describe('the stored form of a token', () => {
  it('is a digest, also for tickets: the store never sees one, nor shows one', async () => {
    await using at = await board();
    const { sites } = at.core;
    const store = at.backend.sessions;
    const spies = [
      vi.spyOn(store, 'open'),
      vi.spyOn(store, 'addGrant'),
      vi.spyOn(store, 'findByToken'),
      vi.spyOn(store, 'putTicket'),
      vi.spyOn(store, 'redeemTicket'),
    ];
    const opened = await sites.open(alice, 'board', {});
    const { token: shared } = await share(at, at.holder);
    const { ticket = '' } = (await sites.ticket(at.holder, at.sessionId)) ?? {};
    await sites.redeem(at.sessionId, ticket);
    expect(spies.map(({ mock }) => mock.calls.length)).toEqual([1, 1, 1, 1, 1]);
    const received = JSON.stringify(spies.map(({ mock }) => mock.calls));
    const kept = JSON.stringify(await store.get([at.sessionId, opened?.view.session.sessionId ?? '']));
    for (const secret of [at.opened.token, opened?.token ?? '', shared, ticket]) {
      expect(secret).toMatch(/^cb[gt]_/);
      for (const text of [received, kept]) expect(text).not.toContain(secret.slice(4));
    }
  });
});

describe('a subscription', () => {
  type Listener = { readonly received: unknown[]; ended: unknown };

  async function listen(
    at: Awaited<ReturnType<typeof board>>,
    requester: Principal,
    names: readonly string[] | null = null,
  ) {
    const subscription = await at.core.sites.subscribe(requester, at.sessionId, names);
    if (!subscription) throw new Error('not there');
    const listener: Listener = { received: [], ended: null };
    const read = async () => {
      for await (const { event, missed } of subscription)
        listener.received.push([event.name, fromJson(event.data), missed]);
      return 'returned';
    };
    void read().then(
      (how) => (listener.ended = how),
      (error: { code: unknown }) => (listener.ended = error.code),
    );
    return listener;
  }

  it('receives what is published from then on, with its retained id', async () => {
    await using at = await board();
    await publish(at, 'changed', 'before');
    const subscription = await at.core.sites.subscribe(at.holder, at.sessionId, null);
    const verdict = await publish(at, 'changed', { id: 7 });
    expect(verdict).toMatchObject({ retained: true, published: true, refusedBy: null });
    const { value } = (await subscription?.next()) ?? {};
    expect(value).toEqual({
      event: { name: 'changed', data: '{"id":7}', messageId: verdict.messageId, publishedAt: at.clock.now() },
      missed: 0,
    });
    const retained = await at.core.history.messages(alice, { stream: 'alice/sites/board/events' }, {});
    expect(retained?.nodes.map(({ id }) => id)).toContain(verdict.messageId);
    await subscription?.return();
  });

  it('receives no event that a rule refused or that was a duplicate, and only allowed and requested ones', async () => {
    await using at = await board({ eventNames: [] });
    const all = await listen(at, at.holder);
    const requested = await listen(at, at.holder, ['closed', 'other']);
    const narrow = (await share(at, alice, { events: ['closed'] })).holder;
    const granted = await listen(at, narrow, ['closed', 'changed']);
    await publish(at, 'changed', 1);
    await publish(at, 'closed', 2);
    await publish(at, 'open', 3);
    const again = { kind: 'event', streamSuffix: 'sites/board/events', clientId: 'desk', instanceId: 'i1' };
    const twice = { ...again, messageId: 'm1', payload: toJson({ name: 'changed', data: 4 }) };
    await at.core.ingest.ingest(alice, [twice, twice]);
    await at.core.ingest.ingest(alice, [{ ...twice, messageId: 'm2', streamSuffix: 'sites/other/events' }]);
    await publish(at, 'closed', 'bob’s', bob);
    await settle();
    expect(all.received).toEqual([
      ['changed', 1, 0],
      ['closed', 2, 0],
      ['changed', 4, 0],
    ]);
    expect([requested.received, granted.received]).toEqual([[['closed', 2, 0]], [['closed', 2, 0]]]);
    expect(await code(at.core.sites.subscribe(narrow, at.sessionId, ['changed']))).toBe('forbidden');
    for (const names of [[], ['error'], ['a b']])
      expect(await code(at.core.sites.subscribe(at.holder, at.sessionId, names))).toBe('invalid_argument');
  });

  it('continues while the host is disconnected, and is counted', async () => {
    await using at = await board();
    const one = await at.core.sites.subscribe(at.holder, at.sessionId, null);
    const two = await at.core.sites.subscribe(alice, at.sessionId, null);
    expect((await at.core.sites.session(alice, at.sessionId))?.subscribers).toBe(2);
    await publish(at, 'changed');
    expect((await one?.next())?.value).toMatchObject({ event: { name: 'changed' } });
    await one?.return();
    await two?.return();
    expect((await at.core.sites.session(alice, at.sessionId))?.subscribers).toBe(0);
  });

  it('keeps 100 events for a slow reader, counts the others, and delays no other reader', async () => {
    await using at = await board();
    const idle = await at.core.sites.subscribe(at.holder, at.sessionId, null);
    const quick = await listen(at, alice);
    for (let i = 0; i < 250; i++) await publish(at, 'changed', i);
    await settle();
    expect(quick.received).toEqual(Array.from({ length: 250 }, (_, i) => ['changed', i, 0]));
    const read: unknown[] = [];
    for (let i = 0; i < 100; i++) {
      const { value } = (await idle?.next()) ?? {};
      if (value) read.push([fromJson(value.event.data), value.missed]);
    }
    expect(read).toEqual(Array.from({ length: 100 }, (_, i) => [150 + i, i === 0 ? 150 : 0]));
    await publish(at, 'changed', 'then');
    expect((await idle?.next())?.value).toMatchObject({ event: { data: '"then"' }, missed: 0 });
    await idle?.return();
  });

  const ENDS: readonly (readonly [
    string,
    string,
    (at: Awaited<ReturnType<typeof board>>) => Promise<unknown>,
    ms: number,
  ])[] = [
    ['its session is closed', 'session_inactive', (at) => at.core.sites.close(alice, at.sessionId), 0],
    ['its site is removed', 'session_inactive', (at) => at.core.sites.remove(alice, 'board'), 0],
    [
      'its grant is revoked',
      'unauthenticated',
      (at) => at.core.sites.revoke(alice, at.sessionId, at.opened.grant.grantId),
      0,
    ],
    [
      'the hint that its grant is revoked is lost',
      'unauthenticated',
      async (at) => at.backend.sessions.revokeGrant(at.sessionId, at.opened.grant.grantId),
      1000,
    ],
    [
      'the hint that it is closed is lost',
      'session_inactive',
      async (at) => at.backend.sessions.close(at.sessionId),
      1000,
    ],
    ['its session expires', 'session_inactive', (at) => at.clock.advance(3599_000), 1000],
  ];

  it.each(ENDS)('ends within a second when %s', async (_what, expected, end, ms) => {
    await using at = await board();
    const listener = await listen(at, at.holder);
    await end(at);
    await settle();
    if (ms > 0) expect(listener.ended).toBeNull();
    await at.clock.advance(ms);
    await settle();
    expect(listener.ended).toBe(expected);
    expect(await code(at.core.sites.subscribe(at.holder, at.sessionId, null))).not.toBe('done');
  });

  it('goes on when a read that began before its grant was given arrives after it has begun', async () => {
    const late = Promise.withResolvers<void>();
    let isHeld = false;
    const wrap = (backend: MemoryBackend): MemoryBackend => ({
      ...backend,
      sessions: {
        ...backend.sessions,
        get: async (sessionIds) => {
          const found = await backend.sessions.get(sessionIds);
          if (isHeld) await late.promise;
          return found;
        },
      },
    });
    await using at = await board({}, { wrap });
    await listen(at, at.holder);
    isHeld = true;
    await at.clock.advance(SESSION_WATCH_MS);
    isHeld = false;
    const given = await share(at, at.holder);
    const listener = await listen(at, given.holder);
    late.resolve();
    await settle();
    expect(listener.ended).toBeNull();
    await publish(at, 'changed', 1);
    await settle();
    expect(listener.received).toEqual([['changed', 1, 0]]);
  });

  it('ends with a shared grant’s expiry, its owner’s token, and the revocation of its parent', async () => {
    await using at = await board();
    const brief = await share(at, at.holder, { ttlSeconds: 5, share: true });
    const child = await share(at, at.holder, { share: true });
    const grandchild = await share(at, child.holder);
    const owner = { ...alice, expiresAt: at.clock.now() + 5_000 };
    const [one, two, three, stays] = await Promise.all([
      listen(at, brief.holder),
      listen(at, owner),
      listen(at, grandchild.holder),
      listen(at, at.holder),
    ]);
    await at.core.sites.revoke(alice, at.sessionId, child.grant.grantId);
    await settle();
    expect([one?.ended, two?.ended, three?.ended]).toEqual([null, null, 'unauthenticated']);
    await at.clock.advance(5_999);
    expect([one?.ended, two?.ended, stays?.ended]).toEqual(['unauthenticated', 'unauthenticated', null]);
  });
});

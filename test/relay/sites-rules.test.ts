/** Tests the rules of site invocations, over every interface. */
import { describe, expect, it } from 'vitest';
import type { Settings } from '../../src/callboard.ts';
import { postJson, type Answer } from '../http/kit/http-relay.ts';
import { settle } from '../kit/clock.ts';
import { codeOf, until, type Requester } from './kit/test-relay.ts';
import { startBoardRelay, DEFINITION, framesOf, disconnectHost, SITE, type BoardRelay } from './kit/board-relay.ts';

/**
 * An interface's answer to an invocation: its HTTP status if it has one, the code (null if the command completed), and
 * the result.
 */
type Reported = { readonly status: number | null; readonly code: string | null; readonly result?: any };
type Face = (at: BoardRelay, requester: Requester, action: string, params?: unknown) => Promise<Reported>;

const rest: Face = async (at, requester, action, params = {}) => {
  const path = `/site-sessions/${at.session.session_id}/actions/${action}`;
  const answer = await at.post(path, { params }, requester);
  return { status: answer.status, code: (codeOf(answer) as string) ?? null, result: answer.json?.['result'] };
};

const INVOKE = `mutation ($input: InvokeSiteActionInput!) {
  invokeSiteAction(input: $input) {
    ... on Invocation { outcome result error { code } }
    ... on Refusal { code by }
  }
}`;

const graphql: Face = async (at, requester, action, params = {}) => {
  const input = { sessionId: at.session.session_id, action, params };
  const { code, data } = await at.graphql(INVOKE, { requester, variables: { input } });
  const shown = data?.['invokeSiteAction'];
  return {
    status: null,
    code: (code as string) ?? shown?.code?.toLowerCase() ?? shown?.error?.code ?? null,
    result: shown?.result,
  };
};

const FACES: readonly (readonly [string, Face])[] = [
  ['REST', rest],
  ['GraphQL', graphql],
];
const WHO: readonly Requester[] = ['viewer', 'alice'];

type Rule = {
  readonly name: string;
  readonly code: string;
  readonly status: number;
  readonly break?: (at: BoardRelay) => Promise<unknown>;
  readonly action?: string;
  readonly params?: unknown;
};

const busy = (at: BoardRelay): Promise<unknown> => {
  void at.post('/connections/alice/desk/actions/leased', { command_id: 'busy' });
  return until(() => at.runtime.running === 1);
};

/**
 * The rules that an invocation of a site's action must meet, in order. Each entry breaks one rule and gives the expected
 * refusal.
 */
const RULES: readonly Rule[] = [
  {
    name: 'input: a parameter of the relay',
    code: 'reserved_parameter',
    status: 400,
    params: { __COOPERATIVE_site_x: 1 },
  },
  { name: 'input: no name of an action', code: 'invalid_argument', status: 400, action: '1' },
  {
    name: 'cooperative',
    code: 'site_mode_denied',
    status: 403,
    // A registration always sets the mode `cooperative`, so another mode is written directly to the store.
    break: async ({ backend }) => {
      const [site] = await backend.sites.get([{ userId: 'alice', siteId: 'board' }]);
      if (site) await backend.sites.put({ ...site, mode: 'observed' });
    },
  },
  {
    name: 'capability',
    code: 'site_capability_denied',
    status: 403,
    break: (at) => at.put({ capability_profile: { sharing: true } }),
  },
  { name: 'allowlist', code: 'site_action_denied', status: 403, action: 'secret' },
  { name: 'active: the host is away', code: 'session_inactive', status: 409, break: disconnectHost },
  {
    name: 'active: the session is closed',
    code: 'session_inactive',
    status: 409,
    break: (at) => at.remove(`/site-sessions/${at.session.session_id}`),
  },
  { name: 'policy', code: 'policy_denied', status: 403, action: 'fails' },
  { name: 'target', code: 'action_not_advertised', status: 404, action: 'gone' },
  { name: 'validation', code: 'arguments_invalid', status: 200, params: { text: 1 } },
  { name: 'authorizer', code: 'client_denied', status: 200, action: 'judged' },
  { name: 'approval', code: 'approval_denied', status: 200, action: 'guarded' },
  { name: 'lease', code: 'lease_busy', status: 200, action: 'leased', break: busy },
];

const closed: NonNullable<Settings['policy']> = {
  rules: [{ name: 'closed', effect: 'deny', actions: ['fails'] }],
  scopes: [],
  userCapacity: null,
};

describe.each(FACES)('an action of a site over %s', (_face, invoke) => {
  it.each(WHO)('runs on the host for the %s, who gets its result', async (requester) => {
    await using at = await startBoardRelay();
    const reported = await invoke(at, requester, 'add', { text: 'tea', n: 12345678901 });
    const site = { sessionId: at.session.session_id, siteId: 'board' };
    expect(reported).toMatchObject({ code: null, result: { params: { text: 'tea', n: 12345678901 }, site } });
  });

  it.each(RULES)('is refused for its broken rule: $name', async (rule) => {
    await using at = await startBoardRelay({ config: { policy: closed } });
    await rule.break?.(at);
    for (const requester of WHO) {
      const reported = await invoke(at, requester, rule.action ?? 'add', rule.params);
      expect([requester, reported.code]).toEqual([requester, rule.code]);
      if (reported.status !== null) expect(reported.status).toBe(rule.status);
    }
  });

  it('is refused for each broken rule before the later ones', async () => {
    await using at = await startBoardRelay();
    await at.put({ actions: [], capability_profile: {} });
    await disconnectHost(at);
    const requested = (params: unknown = {}) => invoke(at, 'viewer', 'add', params);
    expect((await requested({ __cooperative_site_id: 1 })).code).toBe('reserved_parameter');
    expect((await requested()).code).toBe('site_capability_denied');
    await at.put({ actions: [] });
    expect((await requested()).code).toBe('site_action_denied');
    await at.put();
    expect((await requested()).code).toBe('session_inactive');
  });

  it('is limited to the grant if that allows less than the site', async () => {
    await using at = await startBoardRelay();
    const given = await at.post(`/site-sessions/${at.session.session_id}/grants`, { actions: ['judged'] }, 'viewer');
    at.know('guest', String(given.json?.['token']));
    expect((await invoke(at, 'guest', 'add')).code).toBe('site_action_denied');
    expect((await invoke(at, 'guest', 'judged')).code).toBe('client_denied');
    expect((await invoke(at, 'viewer', 'add')).code).toBeNull();
  });

  it('is absent for another user, and for the viewer of another session', async () => {
    await using at = await startBoardRelay();
    at.know('stranger', (await at.open()).token);
    for (const requester of ['bob', 'stranger']) expect((await invoke(at, requester, 'add')).code).toBe('not_found');
    expect((await invoke(at, 'admin', 'add')).code).toBe('forbidden');
    expect((await invoke(at, 'nobody', 'add')).code).toBe('unauthenticated');
    expect((await invoke(at, 'alice:host', 'add')).code).toBe('forbidden');
  });

  it("has the relay’s parameters last, whatever the caller's parameters contain", async () => {
    await using at = await startBoardRelay();
    const seen = await at.callboard.core.history.ofCommand(ADMIN, 'alice', 'none', {});
    expect(seen.nodes).toEqual([]);
    await invoke(at, 'viewer', 'add', { text: '}', nested: { a: [1, '}'] } });
    const { nodes } = (await at.callboard.core.history.messages(ADMIN, { stream: 'alice/clients/desk' }, {})) ?? {
      nodes: [],
    };
    const [command] = nodes;
    expect(Object.entries(JSON.parse(command?.payload ?? '{}'))).toEqual([
      ['text', '}'],
      ['nested', { a: [1, '}'] }],
      ['__cooperative_site_session_id', at.session.session_id],
      ['__cooperative_site_id', 'board'],
    ]);
  });
});

const ADMIN = { kind: 'admin', name: 'test', expiresAt: null } as const;

describe('an action of a site', () => {
  const act = (at: BoardRelay, body: object, requester: Requester = 'viewer'): Promise<Answer> =>
    at.post(`/site-sessions/${at.session.session_id}/actions/add`, body, requester);

  it('is repeated safely by its grant, and no other grant can attach', async () => {
    await using at = await startBoardRelay();
    const first = await act(at, { command_id: 'c1', params: { text: 'a' } });
    const again = await act(at, { command_id: 'c1', params: { text: 'a' } });
    expect([again.status, again.json?.['result']]).toEqual([200, first.json?.['result']]);
    const recorded =
      '{ command(userId: "alice", clientId: "desk", commandId: "c1") { delivery { caller { kind name } } } }';
    const { data } = await at.graphql(recorded, { requester: 'admin' });
    expect(data?.['command'].delivery.caller).toEqual({ kind: 'GRANT', name: at.session.grant_id });
    const given = await at.post(`/site-sessions/${at.session.session_id}/grants`, {}, 'viewer');
    at.know('guest', String(given.json?.['token']));
    for (const requester of ['guest', 'alice'])
      expect(codeOf(await act(at, { command_id: 'c1', params: { text: 'a' } }, requester))).toBe('command_conflict');
    const direct = { command_id: 'c1', params: { text: 'a' } };
    expect(codeOf(await at.post('/connections/alice/desk/actions/add', direct))).toBe('command_conflict');
  });

  it('reaches the hosting instance, and no other', async () => {
    await using at = await startBoardRelay();
    expect(codeOf(await act(at, { instance_id: 'another' }))).toBe('instance_mismatch');
    expect((await act(at, { instance_id: at.runtime.instanceId })).status).toBe(200);
    // The same client opens a new link, which replaces the first one. Its token lacks the scope `host`, so the new link
    // cannot host the site.
    await at.client({
      user: 'alice:connect',
      client_id: 'desk',
      instance_id: 'i9',
      payload: { actions: [{ name: 'add' }] },
    });
    expect(codeOf(await act(at, {}))).toBe('session_inactive');
  });

  it('does not show its viewer a case file', async () => {
    await using at = await startBoardRelay();
    const input = { sessionId: at.session.session_id, action: 'add' };
    const query = `mutation ($input: InvokeSiteActionInput!) {
      invokeSiteAction(input: $input) { ... on Invocation { outcome command { clientId } } }
    }`;
    const shown = async (requester: Requester) =>
      (await at.data(query, { requester, variables: { input } }))['invokeSiteAction'];
    expect(await shown('viewer')).toEqual({ outcome: 'COMPLETED', command: null });
    expect(await shown('alice')).toEqual({ outcome: 'COMPLETED', command: { clientId: 'desk' } });
  });
});

const EVENTS = `subscription ($id: ID!, $names: [String!]) {
  siteEvents(sessionId: $id, names: $names) { name data messageId missed }
}`;

type Verdict = { readonly published: boolean; readonly refused_by: string | null; readonly retained: boolean };
type Publish = (at: BoardRelay, payload: unknown, suffix: string) => Promise<Verdict>;

const INGEST = `mutation ($messages: [IngestMessageInput!]!) {
  ingestMessages(messages: $messages) { ... on IngestResult { items { published retained refused_by: refusedBy } } }
}`;
const PUBLISHERS: readonly (readonly [string, Publish])[] = [
  [
    'REST',
    async (at, payload, suffix) => {
      const answer = await at.publish(payload, { stream_suffix: suffix });
      return (answer.json?.['items'] as Verdict[])[0] as Verdict;
    },
  ],
  [
    'GraphQL',
    async (at, payload, suffix) => {
      const { clientId, instanceId } = at.runtime;
      const message = { kind: 'event', streamSuffix: suffix, clientId, instanceId, payload };
      const { ingestMessages } = await at.data(INGEST, { requester: 'alice', variables: { messages: [message] } });
      const [item] = ingestMessages.items;
      return { ...item, refused_by: item.refused_by?.toLowerCase() ?? null };
    },
  ],
];

describe.each(PUBLISHERS)('an event ingested over %s', (_face, publish) => {
  it('reaches viewers over each interface if it meets all four rules, and only then', async () => {
    await using at = await startBoardRelay();
    const plain = await at.listen('viewer');
    const owner = await at.subscribe(EVENTS, { requester: 'alice', variables: { id: at.session.session_id } });
    await plain.until('callboard.ready');
    const stream = 'sites/board/events';
    const good = { name: 'changed', data: { id: 1 } };
    const reported = [];
    for (const [payload, suffix] of [
      [good, 'sites/board'],
      [good, 'sites/other/events'],
      [{ name: 'callboard.closed' }, stream],
      [{ data: 1 }, stream],
      [{ name: 'other' }, stream],
      [good, 'notes'],
      [good, stream],
    ] as const) {
      const verdict = await publish(at, payload, suffix);
      reported.push([verdict.retained, verdict.published, verdict.refused_by]);
    }
    expect(reported).toEqual([
      [true, false, 'stream'],
      [true, false, 'owner'],
      [true, false, 'name'],
      [true, false, 'name'],
      [true, false, 'allowlist'],
      [true, false, null],
      [true, true, null],
    ]);
    await plain.until('event: changed');
    await owner.until('"changed"');
    expect(framesOf(plain).map(({ event }) => event)).toEqual(['callboard.ready', 'changed']);
    expect(owner.text().split('event: next')).toHaveLength(2);
    plain.abort();
    owner.abort();
  });

  it('belongs to another user on that user’s own stream', async () => {
    await using at = await startBoardRelay();
    const plain = await at.listen('viewer');
    await plain.until('callboard.ready');
    const message = { kind: 'event', stream_suffix: 'sites/board/events', client_id: 'desk', instance_id: 'x' };
    const answer = await at.post('/ingest', { ...message, payload: { name: 'changed' } }, 'bob');
    expect(answer.json?.['items']).toMatchObject([{ stream: 'bob/sites/board/events', refused_by: 'owner' }]);
    await publish(at, { name: 'changed', data: 'own' }, 'sites/board/events');
    await plain.until('"own"');
    expect(framesOf(plain).filter(({ event }) => event === 'changed')).toHaveLength(1);
    plain.abort();
  });
});

describe('a definition over REST', () => {
  it('is created, read, listed and removed', async () => {
    await using at = await startBoardRelay();
    const shown = { site_id: 'board', owner: 'alice', mode: 'cooperative', ...DEFINITION, host_connected: true };
    expect((await at.rest(SITE, { requester: 'alice' })).json).toMatchObject(shown);
    expect((await at.rest('/sites', { requester: 'alice' })).json).toMatchObject({ items: [shown], next_cursor: null });
    expect((await at.rest('/sites?owner=alice')).json).toMatchObject({ items: [shown] });
    expect((await at.rest(`${SITE}?owner=alice`)).json).toMatchObject(shown);
    expect((await at.rest(SITE)).status).toBe(400);
    expect((await at.put({ mode: 'observed' })).json).toMatchObject({ code: 'invalid_argument' });
    expect((await at.put({ mode: 'cooperative' })).json).toMatchObject(shown);
    const bare = await at.rest(SITE, { ...postJson({ client_id: 'desk' }), method: 'PUT', requester: 'alice' });
    expect(bare.json).toMatchObject({ title: null, event_names: [], actions: [] });
    expect(bare.json?.['capability_profile']).toEqual({ action_invocation: false, sharing: false });
    expect((await at.remove(SITE)).json).toEqual({ site_id: 'board', closed_sessions: 1 });
    expect((await at.remove(SITE)).status).toBe(404);
  });

  it('is refused to a user at the maximum', async () => {
    await using at = await startBoardRelay();
    for (let i = 1; i < 100; i++)
      await at.callboard.core.sites.register(
        { kind: 'user', userId: 'alice', scopes: new Set(['host']), expiresAt: null },
        { siteId: `s${i}`, clientId: 'desk' },
      );
    const more = await at.rest('/sites/more', { ...postJson(DEFINITION), method: 'PUT', requester: 'alice' });
    expect([more.status, codeOf(more)]).toEqual([429, 'capacity_exceeded']);
    expect((await at.put()).status).toBe(200);
  });

  it('is registered over the host’s link, with the link’s client as host', async () => {
    await using at = await startBoardRelay();
    const { registered } = at.runtime.site({ siteId: 'linked', title: 'By link', actions: ['add'] });
    await registered;
    expect((await at.rest('/sites/linked', { requester: 'alice' })).json).toMatchObject({
      ...{ title: 'By link', client_id: 'desk', actions: ['add'], host_connected: true },
    });
    await at.runtime.removeSite('linked');
    expect((await at.rest('/sites/linked', { requester: 'alice' })).status).toBe(404);
  });
});

describe('a site on a link', () => {
  const frame = (over: object = {}) =>
    ({ type: 'site', ref: 'r1', op: 'register', site_id: 'linked', ...over }) as const;

  it('requires the scope host, already in the link’s first token', async () => {
    await using at = await startBoardRelay();
    const plain = await at.client({ user: 'alice:connect', client_id: 'tab' });
    plain.send(frame(), {});
    expect(await plain.next('refused')).toMatchObject({ code: 'forbidden', frame: 'site', ref: 'r1' });
    plain.send({ type: 'auth', token: (await at.token('alice')) ?? '' });
    await plain.next('renewed');
    plain.send(frame({ ref: 'r2' }), {});
    expect(await plain.next('refused')).toMatchObject({ code: 'forbidden', ref: 'r2' });
    const caller = await at.caller('alice');
    caller.send(frame(), {});
    expect(await caller.next('refused')).toMatchObject({ code: 'forbidden', ref: 'r1' });
    const full = await at.client({ user: 'alice', client_id: 'tab2' });
    full.send({ type: 'auth', token: (await at.token('alice:connect')) ?? '' });
    expect(await full.next('refused')).toMatchObject({ code: 'forbidden', frame: 'auth' });
    full.send(frame({ ref: 'r3' }), {});
    expect(await full.next('site_ack')).toMatchObject({ ref: 'r3' });
    expect((await at.rest('/sites/linked', { requester: 'alice' })).json).toMatchObject({
      client_id: 'tab2',
      title: null,
    });
  });

  it('is refused by name for what is wrong with it, and for a missing site', async () => {
    await using at = await startBoardRelay();
    const host = await at.client({ user: 'alice', client_id: 'tab' });
    for (const [sent, payload, code] of [
      [frame({ site_id: '..' }), {}, 'invalid_argument'],
      [frame(), { actions: 'add' }, 'invalid_argument'],
      [frame(), { event_names: ['error'] }, 'invalid_argument'],
      [frame({ op: 'remove' }), undefined, 'not_found'],
    ] as const) {
      host.send(sent, payload);
      expect(await host.next('refused')).toMatchObject({ code, frame: 'site', ref: 'r1' });
    }
    await settle();
    expect(host.seen('bye')).toEqual([]);
  });
});

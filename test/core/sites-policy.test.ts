/** Tests which rules decide what a session or grant of a site permits. */
import { describe, expect, it } from 'vitest';
import { toJson, trustJson } from '../../src/core/json.ts';
import {
  effectiveEvents,
  sessionPolicy,
  type HostedSite,
  type SessionOperation,
  type SessionPolicyInput,
} from '../../src/core/sites/session-policy.ts';
import { isEventName } from '../../src/core/sites/site-definition.ts';
import { ownerGrant, type Grant, type SiteSession } from '../../src/core/sites/site-session.ts';
import { projectSiteEvent, type ProjectionFacts } from '../../src/core/sites/projection.ts';

const NOW = 1_000_000;

const site: HostedSite = {
  ...{ userId: 'alice', siteId: 'board', mode: 'cooperative', title: null, clientId: 'desk', registeredAt: 0 },
  eventNames: ['changed', 'closed'],
  actions: ['add', 'drop'],
  capabilityProfile: { actionInvocation: true, sharing: true },
  hostConnected: true,
  hostNodeId: 'n1',
};
const grant: Grant = {
  ...{ grantId: 'g', parentId: null, events: ['changed'], actions: ['add'], share: true },
  ...{ grantedAt: 0, expiresAt: NOW + 10, revokedAt: null },
};
const session: SiteSession = {
  ...{ userId: 'alice', siteId: 'board', sessionId: 's', openedAt: 0, expiresAt: NOW + 20, closedAt: null },
  grants: [grant],
};

const OPERATIONS = {
  read: { kind: 'read' },
  share: { kind: 'share', events: ['changed'], actions: ['add'], share: true },
  subscribe: { kind: 'subscribe', names: ['changed'] },
  invoke: { kind: 'invoke', action: 'add' },
} as const satisfies Record<SessionOperation['kind'], SessionOperation>;
type Kind = SessionOperation['kind'];
const KINDS: readonly Kind[] = ['read', 'share', 'subscribe', 'invoke'];

function ask(operation: SessionOperation, over: Partial<SessionPolicyInput> = {}): string {
  const verdict = sessionPolicy.allows({ grant, session, site, now: NOW, operation, ...over });
  return verdict.allowed ? 'allowed' : verdict.code;
}

/**
 * The broken cases: what is wrong, the input that makes it so, and the code for each operation that is therefore
 * forbidden. The other operations stay allowed.
 */
const BROKEN: readonly (readonly [string, Partial<SessionPolicyInput>, Partial<Record<Kind, string>>])[] = [
  ['nothing', {}, {}],
  [
    'the grant is revoked',
    { grant: { ...grant, revokedAt: NOW } },
    { read: 'unauthenticated', share: 'unauthenticated', subscribe: 'unauthenticated', invoke: 'unauthenticated' },
  ],
  [
    'the grant has expired',
    { grant: { ...grant, expiresAt: NOW } },
    { read: 'unauthenticated', share: 'unauthenticated', subscribe: 'unauthenticated', invoke: 'unauthenticated' },
  ],
  [
    'the session is closed',
    { session: { ...session, closedAt: NOW - 1 } },
    { share: 'session_inactive', subscribe: 'session_inactive', invoke: 'session_inactive' },
  ],
  [
    'the session has expired',
    { session: { ...session, expiresAt: NOW } },
    { share: 'session_inactive', subscribe: 'session_inactive', invoke: 'session_inactive' },
  ],
  [
    'the site was removed',
    { site: null },
    { share: 'session_inactive', subscribe: 'session_inactive', invoke: 'session_inactive' },
  ],
  ['the host is away', { site: { ...site, hostConnected: false } }, { invoke: 'session_inactive' }],
  [
    'the site is not cooperative',
    { site: { ...site, mode: 'observed' } },
    { share: 'site_mode_denied', subscribe: 'site_mode_denied', invoke: 'site_mode_denied' },
  ],
  [
    'the profile lets nobody invoke',
    { site: { ...site, capabilityProfile: { actionInvocation: false, sharing: true } } },
    { invoke: 'site_capability_denied' },
  ],
  [
    'the profile lets nobody share',
    { site: { ...site, capabilityProfile: { actionInvocation: true, sharing: false } } },
    { share: 'site_capability_denied' },
  ],
  ['the grant may not be shared', { grant: { ...grant, share: false } }, { share: 'forbidden' }],
  [
    'the site no longer allows the action',
    { site: { ...site, actions: ['drop'] } },
    { share: 'site_action_denied', invoke: 'site_action_denied' },
  ],
  [
    'the grant lacks the action',
    { grant: { ...grant, actions: ['drop'] } },
    { share: 'site_action_denied', invoke: 'site_action_denied' },
  ],
  [
    'the site no longer publishes the event',
    { site: { ...site, eventNames: ['closed'] } },
    { share: 'forbidden', subscribe: 'forbidden' },
  ],
  ['the grant lacks the event', { grant: { ...grant, events: [] } }, { share: 'forbidden', subscribe: 'forbidden' }],
];

describe('the policy of sessions', () => {
  it.each(BROKEN)('when %s', (_what, over, codes) => {
    const verdicts = Object.fromEntries(KINDS.map((kind) => [kind, ask(OPERATIONS[kind], over)]));
    expect(verdicts).toEqual(Object.fromEntries(KINDS.map((kind) => [kind, codes[kind] ?? 'allowed'])));
  });

  it('names the first broken rule of an invocation in order', () => {
    const broken = { ...site, mode: 'x', hostConnected: false, actions: [] };
    const none = { ...broken, capabilityProfile: { actionInvocation: false, sharing: false } };
    expect(ask(OPERATIONS.invoke, { site: none })).toBe('site_mode_denied');
    expect(ask(OPERATIONS.invoke, { site: { ...none, mode: 'cooperative' } })).toBe('site_capability_denied');
    expect(ask(OPERATIONS.invoke, { site: { ...broken, mode: 'cooperative' } })).toBe('site_action_denied');
    expect(ask(OPERATIONS.invoke, { site: { ...site, hostConnected: false } })).toBe('session_inactive');
  });

  it("binds the owner to the site's rules only", () => {
    const owner = ownerGrant(session);
    expect(ask({ kind: 'invoke', action: 'drop' }, { grant: owner })).toBe('allowed');
    expect(ask({ kind: 'invoke', action: 'other' }, { grant: owner })).toBe('site_action_denied');
    expect(ask({ kind: 'subscribe', names: null }, { grant: owner })).toBe('allowed');
    const share = { kind: 'share', events: null, actions: ['add', 'drop'], share: true } as const;
    expect(ask(share, { grant: owner })).toBe('allowed');
    expect(ask({ ...share, actions: ['other'] }, { grant: owner })).toBe('site_action_denied');
  });

  it('never lets a grant give more than it has, and lets it give less', () => {
    const share = { kind: 'share', events: ['changed'], actions: ['add'], share: false } as const;
    expect(ask({ ...share, actions: ['add', 'drop'] })).toBe('site_action_denied');
    expect(ask({ ...share, events: ['changed', 'closed'] })).toBe('forbidden');
    expect(ask({ ...share, events: [], actions: [] })).toBe('allowed');
    expect(ask({ ...share, events: null, actions: null })).toBe('allowed');
  });

  it.each([
    ['all of all of any', null, null, [], null],
    ['all of all of some', null, null, ['b', 'a'], null],
    ['all of some of any', null, ['b', 'a'], [], ['a', 'b']],
    ['all of some of some', null, ['b', 'a'], ['a', 'c'], ['a']],
    ['some of all of any', ['b', 'a'], null, [], ['a', 'b']],
    ['some of some of any', ['b', 'a', 'c'], ['c', 'b'], [], ['b', 'c']],
    ['some of some of some', ['b', 'a', 'c'], ['c', 'b'], ['c'], ['c']],
    ['none of some', ['a'], ['b'], [], []],
    ['some of none', ['a'], [], [], []],
  ] as const)('subscribes %s', (_what, requested, events, eventNames, received) => {
    expect(effectiveEvents({ events }, { eventNames }, requested)).toEqual(received);
  });
});

describe('the names of events', () => {
  it.each(['changed', 'site_changed', 'Board.task:added-1', 'opened', 'callboardx', 'x'.repeat(128)])(
    'may be %s',
    (name) => expect(isEventName(name)).toBe(true),
  );
  it.each([
    '',
    'error',
    'open',
    'message',
    'callboard.closed',
    'callboard.',
    '1a',
    'a b',
    'a\n',
    'a\r\ndata',
    'a\u0000',
  ])('may not be %j', (name) => expect(isEventName(name)).toBe(false));
  it.each([null, undefined, 1, {}, ['changed'], 'x'.repeat(129)])('may not be %j', (name) =>
    expect(isEventName(name)).toBe(false),
  );
});

describe('projection', () => {
  const facts: ProjectionFacts = {
    message: { userId: 'alice', clientId: 'desk', suffix: 'sites/board/events', kind: 'event' },
    payload: trustJson('{"name":"changed","data":{"id":1}}'),
    site,
  };
  const refusal = (over: Partial<ProjectionFacts>): unknown => projectSiteEvent({ ...facts, ...over }).refusedBy;
  const on = (suffix: string, over: Partial<ProjectionFacts['message']> = {}) => ({
    message: { ...facts.message, suffix, ...over },
  });

  it('publishes an event that meets all rules, with its data', () => {
    expect(projectSiteEvent(facts)).toEqual({ refusedBy: null, event: { name: 'changed', data: toJson({ id: 1 }) } });
    expect(projectSiteEvent({ ...facts, payload: toJson({ name: 'changed' }) })).toMatchObject({
      event: { data: null },
    });
    expect(projectSiteEvent({ ...facts, payload: toJson({ name: 'changed', data: null }) })).toMatchObject({
      event: { data: 'null' },
    });
  });

  it('keeps the data unchanged, and of repeated members the last', () => {
    const data = '{ "10": 1e400,\n "9":9007199254740993, "9":-0 }';
    const payload = trustJson(`{"data":1,"n\\u0061me":"other","name" : "ch\\u0061nged","data": ${data} }`);
    expect(projectSiteEvent({ ...facts, payload })).toEqual({ refusedBy: null, event: { name: 'changed', data } });
  });

  it.each([
    'sites',
    'sites/board',
    'sites/board/events/more',
    'sites/board/event',
    'sites//events',
    'other/board/events',
    'Sites/board/events',
    'sites/board/events/',
  ])('requires the exact stream: %s is refused', (suffix) => expect(refusal(on(suffix))).toBe('stream'));

  it('requires an event', () => {
    for (const kind of ['command', 'progress', 'result', 'error', 'cancel', 'late_result'] as const)
      expect(refusal(on('sites/board/events', { kind }))).toBe('stream');
  });

  it('requires the owner of the site of that stream', () => {
    expect(refusal({ site: null })).toBe('owner');
    expect(refusal({ site: { ...site, userId: 'bob' } })).toBe('owner');
    expect(refusal({ site: { ...site, siteId: 'other' } })).toBe('owner');
    expect(refusal(on('sites/board/events', { userId: 'bob' }))).toBe('owner');
  });

  it('requires the client that hosts the site', () => {
    expect(refusal(on('sites/board/events', { clientId: 'other' }))).toBe('host');
    expect(refusal(on('sites/board/events', { userId: 'bob', clientId: 'other' }))).toBe('owner');
  });

  it.each(
    [null, 'changed', 1, [], ['changed'], {}, { name: 1 }, { name: 'open' }, { name: 'callboard.ready' }].map(
      (payload) => ({ payload: toJson(payload) }),
    ),
  )('requires a valid name: $payload is refused', ({ payload }) => expect(refusal({ payload })).toBe('name'));

  it('requires a name that the site publishes, or any name if the site lists none', () => {
    expect(refusal({ payload: toJson({ name: 'other' }) })).toBe('allowlist');
    expect(refusal({ payload: toJson({ name: 'other' }), site: { ...site, eventNames: [] } })).toBeNull();
  });

  it('checks the rules in their order', () => {
    const wrong = { payload: toJson({ name: 'open' }), site: null };
    expect(refusal({ ...wrong, ...on('sites/board') })).toBe('stream');
    expect(refusal(wrong)).toBe('owner');
    expect(refusal({ ...wrong, site })).toBe('name');
  });
});

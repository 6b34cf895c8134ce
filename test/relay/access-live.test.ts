/** Tests who may subscribe to what. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HAS_PAUSES } from '../kit/store.ts';
import { openRaw, type RawStream } from '../graphql/kit/stream.ts';
import { FIELDS } from './kit/access-fields.ts';
import {
  ABSENT,
  type Ids,
  MARK,
  ofOther,
  OTHER,
  OWNER,
  PLANTED,
  VIEWER,
  withoutGiven,
  world,
  type World,
} from './kit/planted.ts';
import { documentOf, type RootField, rootFields, withArgument } from './kit/selection.ts';
import type { Query, Requester, TestRelay } from './kit/test-relay.ts';

// Lists who may use which GraphQL subscription.

/**
 * A row of the access table of subscriptions. `silent`: the subscription yields nothing until something happens.
 * `seenBy`: who may subscribe besides the owner: `admin`, or the holder of a grant. `owned`: the subscription names an
 * owner, who may be another user.
 */
export type Live = {
  readonly call: string;
  readonly begins: 'shows' | 'silent';
  readonly owned: boolean;
  readonly seenBy: 'admin' | 'viewer';
};

/** The subscriptions, each with example arguments. */
const SUBSCRIPTIONS: Readonly<Record<string, readonly Live[]>> = {
  'Subscription.commandUpdates': [
    {
      call: 'commandUpdates(userId: $user, clientId: $client, commandId: $command)',
      begins: 'shows',
      owned: true,
      seenBy: 'admin',
    },
  ],
  'Subscription.commandEvents': [
    { call: 'commandEvents', begins: 'silent', owned: false, seenBy: 'admin' },
    { call: 'commandEvents(filter: { userId: $user })', begins: 'silent', owned: true, seenBy: 'admin' },
  ],
  'Subscription.connectionEvents': [
    { call: 'connectionEvents', begins: 'silent', owned: false, seenBy: 'admin' },
    { call: 'connectionEvents(userId: $user)', begins: 'silent', owned: true, seenBy: 'admin' },
  ],
  'Subscription.pauseEvents': HAS_PAUSES
    ? [
        { call: 'pauseEvents', begins: 'silent', owned: false, seenBy: 'admin' },
        { call: 'pauseEvents(userId: $user)', begins: 'silent', owned: true, seenBy: 'admin' },
      ]
    : [],
  'Subscription.pendingRpcAlerts': [
    { call: 'pendingRpcAlerts(olderThanMs: 1000)', begins: 'shows', owned: false, seenBy: 'admin' },
    { call: 'pendingRpcAlerts(olderThanMs: 1000, userId: $user)', begins: 'shows', owned: true, seenBy: 'admin' },
  ],
  'Subscription.siteEvents': [
    { call: 'siteEvents(sessionId: $session)', begins: 'silent', owned: true, seenBy: 'viewer' },
  ],
};

// Reads subscriptions over each transport that the relay offers.

/** The functions that read a subscription, by transport. */
export const MODES = {
  'a connection of its own at /graphql': (at, query, requested) => at.subscribe(query, requested),
  'a connection of its own at /graphql/stream': (at, query, requested) =>
    at.subscribe(query, { ...requested, path: '/graphql/stream' }),
  'a single connection': async (at, query, { requester = 'admin', variables } = {}) => {
    const single = await openSingle(at, requester);
    await single.run('1', query, variables);
    return single.stream;
  },
} as const satisfies Record<string, (at: TestRelay, query: string, requested?: Query) => Promise<RawStream>>;

export type Single = {
  readonly token: string;
  readonly stream: RawStream;
  run(id: string, query: string, variables?: object): Promise<Response>;
};

/** Reserves and opens a stream that carries several operations. */
async function openSingle(at: TestRelay, requester: Requester): Promise<Single> {
  const authorization = `Bearer ${await at.token(requester)}`;
  const url = `${at.url}/graphql/stream`;
  const token = await (await fetch(url, { method: 'PUT', headers: { authorization } })).text();
  const named = { authorization, 'x-graphql-event-stream-token': token };
  const stream = await openRaw(url, { headers: { ...named, accept: 'text/event-stream' } });
  return {
    token,
    stream,
    run: (operationId, query, variables) =>
      fetch(url, {
        method: 'POST',
        headers: { ...named, 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables, extensions: { operationId } }),
      }),
  };
}

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(() => at[Symbol.asyncDispose]());

const fields = rootFields();
const subscriptions = fields.filter(({ operation }) => operation === 'subscription');
const rows = subscriptions.flatMap((field) => (SUBSCRIPTIONS[field.name] ?? []).map((row) => ({ field, ...row })));

function variablesOf(call: string, ids: Ids): Record<string, unknown> {
  return Object.fromEntries(Object.entries(at.named(ids)).filter(([name]) => call.includes(`$${name}`)));
}

type Open = (requester: string, given: { field: RootField; call: string }, ids: Ids) => Promise<RawStream>;

it('has a row for each subscription', () => {
  expect(subscriptions.map(({ name }) => name).sort()).toEqual(Object.keys(SUBSCRIPTIONS).sort());
});

describe.each(Object.entries(MODES))('a subscription over %s', (_mode, subscribe) => {
  const open: Open = (requester, { field, call }, ids) =>
    subscribe(at, documentOf(field, call), { requester, variables: variablesOf(call, ids) });
  const answered = async (requester: string, given: { field: RootField; call: string }, ids: Ids): Promise<string> => {
    const stream = await open(requester, given, ids);
    await stream.until('event: complete');
    stream.abort();
    return withoutGiven(stream.text().replaceAll(':\n\n', ''), at.named(ids));
  };
  let epoch = 0;
  /**
   * Causes an event for each subscription: changes of the user's client, a published event of its site, a pause of a
   * client that is not there, and a call of its client.
   */
  const stir = async (ids: Ids): Promise<void> => {
    const instance_id = `${ids.client}-run-${epoch++}`;
    const client_id = `${ids.client}-more`;
    await at.client({ user: ids.user, client_id, instance_id, payload: { actions: [{ name: ids.action }] } });
    const payload = { name: `${ids.site}.changed`, data: { note: `${ids.site}-data` } };
    // Viewers get events only of the client that hosts the site.
    const host = { client_id: ids.client, instance_id: ids.site.replace(/-site$/, '-instance') };
    const event = { kind: 'event', stream_suffix: `sites/${ids.site}/events`, ...host, payload };
    const ingested = await at.post('/ingest', event, `${ids.user}:host`);
    expect(ingested.json).toMatchObject({ items: [{ published: true }] });
    const pause = { user_id: ids.user, client_id: `${ids.client}-paused`, reason: 'it is late' };
    if (HAS_PAUSES) {
      const { json } = await at.post('/pauses', pause, 'admin');
      await at.rest(`/pauses/${json?.['pause_id']}`, { method: 'DELETE', requester: 'admin' });
    }
    const call = `/connections/${ids.user}/${client_id}/actions/${ids.action}`;
    expect((await at.post(call, { wait_for: 'admitted' }, `${ids.user}:invoke`)).status).toBeLessThan(300);
  };

  it.each(rows)('$call reaches the owner and everybody with permission, and no other user', async (given) => {
    const seenBy = given.seenBy === 'viewer' ? VIEWER : 'admin';
    const [owner, more] = await Promise.all(
      [`${OWNER}:invoke`, seenBy].map((requester) => open(requester, given, PLANTED)),
    );
    const other = await open(`${OTHER}:invoke`, given, ofOther);
    await Promise.all([owner, more, other].map((stream) => stream?.until(':')));
    if (given.begins === 'silent') await stir(PLANTED);
    await Promise.all([owner?.until(MARK), more?.until(MARK)]);
    if (given.begins === 'silent') await stir(ofOther);
    await other.until('plain');
    expect(other.text()).not.toContain(MARK);
    [owner, more, other].forEach((stream) => stream?.abort());
  });

  it.each(rows.filter(({ owned }) => owned))(
    '$call is not found for another user, foreign or absent',
    async (given) => {
      const foreign = await answered(`${OTHER}:invoke`, given, PLANTED);
      expect(foreign).toContain('"code":"not_found"');
      expect(foreign).not.toContain(MARK);
      expect(foreign).toBe(await answered(`${OTHER}:invoke`, given, ABSENT));
      if (given.seenBy === 'viewer') expect(await answered(VIEWER, given, ofOther)).toContain('"code":"not_found"');
    },
  );

  it.each(rows)('$call is forbidden for each other scope', async (given) => {
    const wrong = [`${OWNER}:connect`, `${OWNER}:host`, given.seenBy === 'viewer' ? 'admin' : VIEWER];
    for (const requester of wrong) {
      const answer = await answered(requester, given, PLANTED);
      expect(answer).toContain('"code":"forbidden"');
      expect(answer).not.toContain(MARK);
    }
  });
});

describe('a single connection', () => {
  it('belongs to its owner: with its token another user is answered as with an invented one', async () => {
    const single = await openSingle(at, `${OWNER}:invoke`);
    const authorization = `Bearer ${await at.token(`${OTHER}:invoke`)}`;
    const body = JSON.stringify({ query: '{ viewer { userId } }', extensions: { operationId: '1' } });
    const ways = [
      { method: 'GET', headers: { accept: 'text/event-stream' } },
      { method: 'POST', headers: { 'content-type': 'application/json' }, body },
      { method: 'DELETE', headers: {} },
    ];
    for (const way of ways) {
      const [foreign, absent] = await Promise.all(
        [single.token, 'made-up'].map(async (token) => {
          const headers = { ...way.headers, authorization, 'x-graphql-event-stream-token': token };
          const answer = await fetch(`${at.url}/graphql/stream?operationId=1`, { ...way, headers });
          return { status: answer.status, text: await answer.text() };
        }),
      );
      expect([way.method, foreign]).toEqual([way.method, absent]);
      expect(foreign?.status).toBe(404);
    }
    await single.run('1', '{ viewer { userId } }');
    await single.stream.until(OWNER);
    single.stream.abort();
  });

  it.each(['GET', 'POST', 'PUT'])('requires a token from a requester by %s', async (method) => {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json', 'x-callboard-csrf': '1' };
    const body = method === 'POST' ? JSON.stringify({ query: 'subscription { connectionEvents { at } }' }) : null;
    const answer = await fetch(`${at.url}/graphql/stream`, { method, headers, body });
    expect([answer.status, (await answer.text()).includes('unauthenticated')]).toEqual([401, true]);
  });
});

describe('a cursor', () => {
  const paged = fields.filter(({ args }) => args.some(({ name }) => name === 'after'));
  const kept = paged.filter(({ name }) => HAS_PAUSES || !/^Query\.(pauses|revocations|devices)$/.test(name));
  const calls = kept.flatMap((field) => (FIELDS[field.name] ?? []).map(({ call, rule }) => ({ field, call, rule })));

  it.each(calls)('of $call opens only for the requester to whom it was given', async ({ field, call, rule }) => {
    const page = async (requester: string, ids: Ids, after: string | null = null) => {
      const more = withArgument(call, 'after: $after');
      return at.graphql(documentOf(field, more), { requester, variables: { ...variablesOf(call, ids), after } });
    };
    const given = rule === 'admin' ? 'admin' : `${OWNER}:invoke`;
    const own = await page(given, PLANTED);
    const cursor = own.data?.[field.name.split('.')[1] ?? ''].pageInfo.endCursor;
    expect(cursor).toEqual(expect.any(String));
    expect((await page(given, PLANTED, cursor)).code).toBeUndefined();
    const requesters = [
      { requester: `${OTHER}:invoke`, ids: ofOther, code: rule === 'admin' ? 'forbidden' : 'invalid_cursor' },
      {
        requester: `${OTHER}:invoke`,
        ids: PLANTED,
        code: { admin: 'forbidden', mine: 'invalid_cursor', owned: 'not_found', session: 'not_found' }[rule],
      },
      { requester: 'ops:admin', ids: PLANTED, code: 'invalid_cursor' },
      ...(rule === 'admin' ? [] : [{ requester: 'admin', ids: PLANTED, code: 'invalid_cursor' }]),
    ];
    for (const { requester, ids, code } of requesters) {
      expect([requester, (await page(requester, ids, cursor)).code]).toEqual([requester, code]);
    }
  });
});

/** Tests who may send which REST request, for every route. */
import { OTHER_OPERATIONS } from '../rest/kit/conformance.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createBuiltinRoutes } from '../../src/http/routes.ts';
import { postJson, type Answer } from '../http/kit/http-relay.ts';
import { BUILTIN_ROUTES, type Route, ROUTES } from './kit/access-routes.ts';
import { codeOf } from './kit/test-relay.ts';
import {
  ABSENT,
  MARK,
  ofOther,
  OTHER,
  OWNER,
  PLANTED,
  VIEWER,
  withoutGiven,
  world,
  type Ids,
  type World,
} from './kit/planted.ts';

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(() => at[Symbol.asyncDispose]());

const rows = Object.entries(ROUTES).flatMap(([name, routes]) =>
  routes.map((route) => ({ name, route, example: `${name.split(' ')[0]} ${route.target(PLANTED)}` })),
);
const harmless = rows.filter(({ route }) => !route.harmful);
type Given = (typeof rows)[number];

function ask(requester: string, { name, route }: Given, ids: Ids): Promise<Answer> {
  const [method = ''] = name.split(' ');
  const named = at.named(ids);
  const sent = method === 'GET' || method === 'DELETE' ? {} : postJson(route.body?.(named) ?? {});
  return at.rest(route.target(named), { requester, ...sent, method });
}

/** Returns the whole answer, except for the requester's own input. */
function shown({ status, headers, text }: Answer, ids: Ids): object {
  return { status, type: headers['content-type'], text: withoutGiven(text, at.named(ids)) };
}

type Expected = readonly [number, string];
const FORBIDDEN: Expected = [403, 'forbidden'];
const NOT_FOUND: Expected = [404, 'not_found'];

/**
 * Checks that this requester gets this answer, that it is the same for present and absent rows, and that it contains
 * nothing of the owner's.
 */
async function expectAlike(requester: string, given: Given, expected: Expected): Promise<void> {
  const [found, absent] = [await ask(requester, given, PLANTED), await ask(requester, given, ABSENT)];
  expect([requester, found.status, codeOf(found)]).toEqual([requester, ...expected]);
  expect(shown(found, PLANTED)).toEqual(shown(absent, ABSENT));
  expect(withoutGiven(found.text, at.named(PLANTED))).not.toContain(MARK);
}

/** Returns the scope that a user's token needs. */
const right = ({ access, scope }: Route): string => (access === 'host' || scope === 'host' ? 'host' : 'invoke');

/**
 * The table of routes has no row for the event stream, because a stream does not end by itself. `sites-events.test.ts`
 * tests who may subscribe.
 */

describe('the access of REST', () => {
  it('has a row for each operation of the description', async () => {
    const { paths } = JSON.parse((await at.rest('/openapi.json', { requester: 'nobody' })).text);
    const operations = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations.filter((operation) => !ROUTES[operation])).toEqual(expect.arrayContaining([...OTHER_OPERATIONS]));
    expect(operations.filter((operation) => !ROUTES[operation]).length).toBe(OTHER_OPERATIONS.length);
    expect(Object.keys(ROUTES).filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  it.each(harmless)('$example answers an administrator, or that it is absent', async (given) => {
    const { access, found, absent, plain = false } = given.route;
    // An administrator owns no rows, and may read each session but use none.
    if (access === 'host') return expectAlike('admin', given, FORBIDDEN);
    if (access === 'grant' && !given.name.startsWith('GET')) return expectAlike('admin', given, FORBIDDEN);
    const answer = await ask('admin', given, PLANTED);
    expect([answer.status, answer.text.includes(MARK)]).toEqual([found, !plain]);
    expect((await ask('admin', given, ABSENT)).status).toBe(absent);
  });

  it.each(harmless)('$example answers its owner as the rule allows', async (given) => {
    const { access, found, plain = false } = given.route;
    const owner = `${OWNER}:${right(given.route)}`;
    if (access === 'admin') return expectAlike(owner, given, FORBIDDEN);
    const answer = await ask(owner, given, PLANTED);
    expect([answer.status, answer.text.includes(MARK)]).toEqual([found, !plain]);
  });

  it.each(rows)('$example gives another user the same answer for foreign and for absent rows', async (given) => {
    const { access, mine, found } = given.route;
    const other = `${OTHER}:${right(given.route)}`;
    if (!mine) return expectAlike(other, given, access === 'admin' ? FORBIDDEN : NOT_FOUND);
    const answer = await ask(other, given, PLANTED);
    expect([answer.status, answer.text.includes(MARK)]).toEqual([found, false]);
  });

  it.each(rows)('$example is forbidden for each other scope', async (given) => {
    const wrong = ['connect', 'invoke', 'host'].filter((scope) => scope !== right(given.route));
    for (const scope of wrong) await expectAlike(`${OWNER}:${scope}`, given, FORBIDDEN);
  });

  it.each(rows)('$example opens for a grant of its session, and for no other', async (given) => {
    if (given.route.access !== 'grant') return expectAlike(VIEWER, given, FORBIDDEN);
    if (!given.route.harmful) expect((await ask(VIEWER, given, PLANTED)).status).toBe(given.route.found);
    const [foreign, absent] = [await ask(VIEWER, given, ofOther), await ask(VIEWER, given, ABSENT)];
    expect([foreign.status, codeOf(foreign)]).toEqual(NOT_FOUND);
    expect(shown(foreign, ofOther)).toEqual(shown(absent, ABSENT));
  });

  it.each(rows)('$example requires a token', async (given) => {
    await expectAlike('nobody', given, [401, 'unauthenticated']);
  });
});

describe('the access of paths without a document', () => {
  const NOTHING_KEPT = { kind: 'memory', sync: null, bytes: null, full: false, snapshotAt: null, away: null } as const;
  const known = [
    ...createBuiltinRoutes({
      core: {
        ...{ ready: () => {}, fullShares: () => [], nodeId: 'node-a' },
        ...{ durability: () => NOTHING_KEPT, policyReport: () => null },
      },
      version: '1.2.3',
      authenticator: {},
      meter: { expose: async () => ({ contentType: '', text: '' }) },
      authenticate: () => null,
      sockets: { authenticated() {} },
      metricsToken: { accepts: () => false },
      openapi: () => Promise.resolve({}),
      basePath: '',
      clientFiles: new URL('file:///'),
    }).keys(),
  ];

  it('has a row for each path', () => {
    expect(Object.keys(BUILTIN_ROUTES).sort()).toEqual(known.sort());
  });

  it.each(Object.entries(BUILTIN_ROUTES))('%s is %s, and shows nothing of any user', async (path, rule) => {
    const requested = ['nobody', `${OTHER}:invoke`, `${OWNER}:invoke`, 'admin'];
    const answers = await Promise.all(requested.map((requester) => at.rest(path, { requester })));
    if (rule === 'file')
      return expect(new Set(answers.map(({ status, text }) => `${status} ${text.length}`)).size).toBe(1);
    const expected = { open: [200, 200, 200, 200], admin: [401, 403, 403, 200], upgrade: [426, 426, 426, 426] };
    expect(answers.map(({ status }) => status)).toEqual(expected[rule]);
    for (const { text } of answers) expect(text).not.toContain(MARK);
  });

  it('shows the GraphiQL page to everybody, and nothing of any user in it', async () => {
    const page = await at.rest('/graphql', { requester: 'nobody', headers: { accept: 'text/html' } });
    expect([page.status, page.text.includes(MARK)]).toEqual([200, false]);
  });
});

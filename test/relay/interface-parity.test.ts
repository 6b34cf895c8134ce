/** Tests that REST and GraphQL answer each documented operation alike. */
import { OTHER_OPERATIONS } from '../rest/kit/conformance.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeClock } from '../kit/clock.ts';
import { postJson, type Answer } from '../http/kit/http-relay.ts';
import { IS_DIRECT } from '../kit/store.ts';
import { type Route, ROUTES } from './kit/access-routes.ts';
import { readRestDocuments, variablesOf, withRestEnums, type RestDocument } from './kit/rest-documents.ts';
import { codeOf } from './kit/test-relay.ts';
import { ABSENT, OWNER, PLANTED, VIEWER, world, type Ids, type World } from './kit/planted.ts';

/**
 * A relay with the same history as `twin`. An operation that changes something runs once on each: on one by REST, on
 * the other by GraphQL.
 */
let at: World;
let twin: World;
beforeAll(async () => {
  const now = Date.now();
  at = await world({ clock: new FakeClock(now) });
  twin = await world({ clock: new FakeClock(now) });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await twin[Symbol.asyncDispose]();
});

/**
 * The names of the random members of answers. They differ between two relays, but not between two answers of one relay.
 */
const BY_CHANCE = [
  'rpc_id',
  'node_id',
  'nodes',
  'message_id',
  'session_id',
  'grant_id',
  'pause_id',
  'revocation_id',
  'parent_id',
  'token',
  'ticket',
  'revoked',
];

/**
 * The operations that change something, with requests that succeed. The access examples apply the same operations to
 * absent rows.
 */
const CHANGING_ROUTES: Readonly<Record<string, readonly Route[]>> = {
  'POST /connections/{user_id}/{client_id}/disconnect': [
    {
      access: 'admin',
      target: ({ user, client }) => `/connections/${user}/${client}/disconnect`,
      body: () => ({ reason: 'over' }),
      found: 200,
      absent: 404,
      harmful: true,
    },
  ],
};

/**
 * The operations of CHANGING_ROUTES that are tested. None is tested over Redis, where they poll for their result every
 * few milliseconds, because the clock does not advance here.
 */
const changingRoutes = IS_DIRECT ? CHANGING_ROUTES : {};

const questions = new Map(readRestDocuments().map((question) => [question.name, question]));
const examples = Object.entries(ROUTES)
  .flatMap(([name, routes]) => [...routes, ...(changingRoutes[name] ?? [])].map((route) => ({ name, route })))
  .map((one) => ({ ...one, example: `${one.name.split(' ')[0]} ${one.route.target(PLANTED)}` }))
  .sort((a, b) => Number(a.route.harmful ?? false) - Number(b.route.harmful ?? false));
type Example = (typeof examples)[number];

function requesterOf({ access, scope }: Route): string {
  if (access === 'admin' || access === 'invoke') return 'admin';
  return access === 'host' || scope === 'host' ? `${OWNER}:host` : VIEWER;
}

function questionOf(name: string): RestDocument {
  const question = questions.get(name);
  if (!question) throw new Error(`no document for ${name}`);
  return question;
}

type Both = { readonly rest: Answer; readonly code: unknown; readonly body: any };

async function askBoth({ name, route }: Example, given: Ids): Promise<Both> {
  const question = questionOf(name);
  const [method = ''] = name.split(' ');
  const reads = question.operation.operation === 'query';
  const other = reads ? at : twin;
  const requester = requesterOf(route);
  const ids = at.named(given);
  const body = method === 'GET' || method === 'DELETE' ? undefined : (route.body?.(ids) ?? {});
  const rest = await at.rest(route.target(ids), { requester, ...(body && postJson(body)), method });
  const there = other.named(given);
  const variables = variablesOf(question, route.target(there), body && (route.body?.(there) ?? {}));
  const graphql = await other.graphql(question.text, { requester, variables });
  const data = withRestEnums(question, graphql.data);
  const answer = question.body.reduce<any>((value, key) => value?.[key], data);
  return { rest, code: graphql.code, body: reads ? answer : withoutChance(answer) };
}

function withoutChance(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutChance);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, one]) => [
    key,
    BY_CHANCE.includes(key) && one !== null ? '<chance>' : withoutChance(one),
  ]);
  return Object.fromEntries(entries);
}

const isReading = (name: string): boolean => questionOf(name).operation.operation === 'query';

describe('REST and GraphQL', () => {
  it('have a GraphQL document, and an example, for each operation of REST', async () => {
    const { paths } = JSON.parse((await at.rest('/openapi.json')).text);
    const operations = Object.entries<object>(paths)
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
      // Operations without a REST document are left out. One of them is the event stream, which is `siteEvents` over
      // GraphQL.
      .filter((operation) => !OTHER_OPERATIONS.includes(operation))
      .sort();
    expect([...questions.keys()].sort()).toEqual(operations);
    expect(Object.keys(ROUTES).sort()).toEqual(operations);
  });

  it.each(examples)('answer $example alike', async (given) => {
    const { rest, code, body } = await askBoth(given, PLANTED);
    expect(rest.status).toBe(given.route.found);
    if (rest.status === 404) return expect([code ?? body?.code, codeOf(rest)]).toEqual(['not_found', 'not_found']);
    if (rest.status >= 400) return expect(body).toMatchObject({ code: codeOf(rest) });
    expect(code).toBeUndefined();
    expect(isReading(given.name) ? rest.json : withoutChance(rest.json)).toEqual(body);
  });

  const absent = examples.filter(({ route }) => !route.harmful);
  it.each(absent)('answer $example alike for absent rows', async (given) => {
    const { rest, code, body } = await askBoth(given, ABSENT);
    if (rest.status < 400) return expect(isReading(given.name) ? rest.json : withoutChance(rest.json)).toEqual(body);
    if (body === null || body === undefined)
      return expect([codeOf(rest), code ?? 'not_found']).toEqual([codeOf(rest), codeOf(rest)]);
    expect(body).toMatchObject({ code: codeOf(rest) });
  });
});

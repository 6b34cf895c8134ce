/** Tests that a user's token is enough for every documented query and every verb, as far as it concerns their own data. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verbs.ts';
import { operatorOf } from '../cli/operator/kit/operator.ts';
import { HAS_PAUSES } from '../kit/store.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';

const DOCS = join(import.meta.dirname, '../../docs');

let relay: RealRelay;
let token: string;
beforeAll(async () => {
  relay = await startRealRelay();
  token = await relay.token('demo', 'connect', 'invoke', 'host');
});
afterAll(() => relay[Symbol.asyncDispose]());

type Asked = { readonly query: string; readonly variables?: object };

/** Returns the queries in the fenced GraphQL of the docs, and those in the bodies of their commands. */
function documented(): readonly Asked[] {
  const texts = readdirSync(DOCS)
    .filter((name) => name.endsWith('.md'))
    .map((name) => readFileSync(join(DOCS, name), 'utf8'));
  return texts.flatMap((text) => [
    ...[...text.matchAll(/```graphql\n([^`]+)```/g)].map(([, query = '']) => ({ query })),
    ...[...text.matchAll(/-d '(\{"query":.+\})'/g)].map(([, body = '{}']): Asked => JSON.parse(body)),
  ]);
}

function isQuery({ query }: Asked): boolean {
  return parse(query).definitions.every((node) => node.kind !== 'OperationDefinition' || node.operation === 'query');
}

it('every documented query is answered, or forbidden if it shows what belongs to others', async () => {
  const queries = documented().filter(isQuery);
  expect(queries.length).toBeGreaterThanOrEqual(3);
  for (const body of queries) {
    const answer = await fetch(`${relay.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const { errors = [] }: { errors?: { extensions: { code: string } }[] } = await answer.json();
    const codes = new Set(errors.map(({ extensions }) => extensions.code));
    codes.delete('forbidden');
    expect([body.query, ...codes]).toEqual([body.query]);
  }
});

/** A policy file, for the verb that compares it with what was called. */
const POLICY = join(import.meta.dirname, '../../deploy/kubernetes/base/policy.json');

/** The arguments of the verbs that need some; a verb that waits for events is not run. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  call: ['demo/desk', 'work'],
  preflight: ['demo/desk', 'work'],
  'calls get': ['demo/desk/c1'],
  'calls await': ['demo/desk/c1'],
  'calls cancel': ['demo/desk/c1'],
  'calls find': ['c1'],
  'calls reveal': ['demo/desk/c1', '--reason', 'a reason'],
  'clients get': ['demo/desk'],
  'clients actions': ['demo/desk'],
  'clients disconnect': ['demo/desk', '--yes'],
  'users get': ['demo'],
  'sites get': ['demo/s1'],
  'streams ls': ['demo'],
  'messages ls': ['demo/clients/desk'],
  'nodes drain': ['n1', '--yes'],
  top: ['--count', '1'],
  pause: ['--client-id', 'desk', '--reason', 'a reason'],
  resume: ['p1'],
  revoke: ['--client-id', 'tablet', '--reason', 'a reason', '--yes'],
  'devices confirm': ['WDJB-MJHT', '--yes'],
  'devices deny': ['WDJB-MJHT'],
  'devices rename': ['demo/tablet', 'a name'],
  'devices rm': ['demo/tablet', '--reason', 'a reason', '--yes'],
  'policy diff': [POLICY],
};
const FOLLOWS = ['calls tail', 'waits watch', 'clients watch', 'messages tail', 'mcp'];
const LOCAL = /^(context|completion|conformance|doctor|policy check)/;

const verbs = VERBS.map(({ name }) => name).filter((name) => !FOLLOWS.includes(name) && !LOCAL.test(name));

it.each(verbs)('`callboard %s` is never too much for a user', async (name) => {
  const run = operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: token });
  const { code, err } = await run([...name.split(' '), ...(ARGUMENTS[name] ?? [])]);
  expect(err).not.toContain('too_complex');
  expect(err).not.toContain('may cost');
  // 2 would say that the command was wrong; 1 and 11 that something failed.
  const isLacking = !HAS_PAUSES && err.startsWith('not_supported: ');
  expect([name, isLacking || [0, 3, 4, 5].includes(code), code, err]).toEqual([name, true, code, err]);
});

it.each([
  ['users get', 0],
  ['clients ls', 0],
  ['places ls', 0],
  ['waits ls', 0],
  ['waits count', 0],
  ['streams ls', 0],
  ['calls ls', 4],
  ['users ls', 4],
  ['actions ls', 4],
  ['clients flapping', 4],
  ['status', 4],
  ['top', 4],
  ['nodes ls', 4],
  ['capacity ls', 4],
])('`callboard %s` of a user ends with %i', async (name, expected) => {
  const run = operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: token });
  const { code, err } = await run([...name.split(' '), ...(ARGUMENTS[name] ?? [])]);
  expect([code, err]).toEqual([expected, expected === 0 ? '' : expect.any(String)]);
});

it('who may call 20 actions is asked twice in a document of a user, and not three times: it would cost too much', async () => {
  const actions = JSON.stringify(Array.from({ length: 20 }, (_, n) => `a${n}`));
  const codes = await Promise.all(
    [2, 3].map(async (count) => {
      const fields = Array.from(
        { length: count },
        (_, n) => `q${n}: actionPermissions(userId: "demo", actions: ${actions})`,
      );
      const query = `{ ${fields.map((field) => `${field} { action }`).join(' ')} }`;
      const answer = await fetch(`${relay.url}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      const { errors, data } = await answer.json();
      return errors?.[0]?.extensions.code ?? data.q1.length;
    }),
  );
  expect(codes).toEqual([20, 'too_complex']);
});

/** Tests that routes of administrators refuse users, and name the field that answers users. */
import { getNamedType, isObjectType, isRequiredArgument, type GraphQLObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schema } from '../../src/graphql/schema/schema.ts';
import { readOperations } from '../../src/rest/compile.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

let relay: TestRelay;
beforeAll(async () => {
  relay = await startTestRelay();
  const message = { kind: 'event', stream_suffix: 'notes', client_id: 'tab', instance_id: 'i1' };
  expect((await relay.post('/ingest', message)).status).toBe(200);
});
afterAll(() => relay[Symbol.asyncDispose]());

type AdminRoute = { readonly path: string; readonly forUsers: string | null };

/** The reading routes of administrators, each with the field that answers users instead. */
const ADMIN_ROUTES: readonly AdminRoute[] = readOperations().flatMap(({ text }) =>
  [...text.matchAll(/@rest\(\s*get: "([^"]+)"\s*,?\s*access: ADMIN([^)]*)\)/g)].map(([, path = '', more = '']) => ({
    path,
    forUsers: /forUsers: "([^"]+)"/.exec(more)?.[1] ?? null,
  })),
);

/** A value for each argument that a field for users requires. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  userId: '"alice"',
  clientId: '"tab"',
  commandId: '"c1"',
  windowId: '"w1"',
  taskId: '"t1"',
  stream: '"alice/notes"',
};

/** Returns a query that selects the field at this path, with the arguments that it requires. */
function queryOf(path: readonly string[], type: GraphQLObjectType): string {
  const [name = '', ...rest] = path;
  const field = type.getFields()[name];
  if (!field) throw new Error(`${type.name} has no field ${name}`);
  const needed = field.args.filter((arg) => isRequiredArgument(arg));
  const given = needed.map((arg) => `${arg.name}: ${ARGUMENTS[arg.name] ?? `$${arg.name}`}`).join(', ');
  const inner = getNamedType(field.type);
  const selection = !isObjectType(inner) ? '' : rest.length > 0 ? queryOf(rest, inner) : '{ __typename }';
  return `{ ${name}${given && `(${given})`} ${selection} }`;
}

const query = schema.getQueryType();
const withField = ADMIN_ROUTES.filter(({ forUsers }) => forUsers !== null);
const without = ADMIN_ROUTES.filter(({ forUsers }) => forUsers === null);

const filled = (path: string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'user_id' ? 'alice' : 'x1'));

describe('a path of administrators', () => {
  it('is found in the documents', () => {
    expect(withField.length).toBeGreaterThan(15);
    expect(without.map(({ path }) => path).sort()).toEqual([
      '/dedup/backend',
      '/dedup/stats',
      '/delivery/failures',
      '/delivery/nodes',
      '/delivery/summary',
      '/delivery/tenants',
      '/history/raw-messages',
      '/revocations',
    ]);
  });

  it.each(withField)('$path refuses users and names the field $forUsers, which answers them', async (border) => {
    const { path, forUsers } = border;
    const answer = await relay.rest(filled(path), { requester: 'alice:invoke' });
    expect([answer.status, answer.json?.['code']]).toEqual([403, 'forbidden']);
    expect(answer.json?.['detail']).toBe(
      `This path is for administrators only. GraphQL answers users about their own data: field \`${forUsers}\`.`,
    );
    if (!query) throw new Error('no query type');
    const asked = await relay.graphql(queryOf(forUsers?.split('.') ?? [], query), { requester: 'alice:invoke' });
    expect(asked.errors).toEqual([]);
  });

  it.each(without)('$path refuses users without naming a field, and GraphQL refuses them too', async ({ path }) => {
    const answer = await relay.rest(filled(path), { requester: 'alice:invoke' });
    expect([answer.status, answer.json?.['detail']]).toEqual([403, 'This path is for administrators only.']);
    const [room = '', name] = path.slice(1).split('/');
    const fields: Readonly<Record<string, string>> = {
      '/history/raw-messages': '{ rawMessages { __typename } }',
      '/delivery/commands': '{ delivery { commands(first: 1) { __typename } } }',
      '/revocations': '{ revocations { __typename } }',
    };
    const asked = await relay.graphql(fields[path] ?? `{ ${room} { ${name} { __typename } } }`, {
      requester: 'alice:invoke',
    });
    expect(asked.code).toBe('forbidden');
  });

  it('asks for a token first', async () => {
    expect((await relay.rest('/users', { requester: 'nobody' })).status).toBe(401);
  });
});

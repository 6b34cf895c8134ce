/** Tests the nested query of the documentation, on a whole relay. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { advertisement, connect, user, type TestClient } from '../kit/core.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

const USERS = 50;
const CLIENTS = 20;
/** The number of clients of each user that have completed a command. Their other clients still run one. */
const DONE = 5;
const WAITED_FOR = 2;
const QUERY = readFileSync(join(import.meta.dirname, 'kit/nested.graphql'), 'utf8');
const PAGE = join(import.meta.dirname, '../../docs/graphql.md');

const two = (n: number): string => String(n).padStart(2, '0');
const names = Array.from({ length: USERS }, (_, i) => `user-${two(i)}`);
const admin = { kind: 'admin', name: 't', expiresAt: null } as const;

let at: TestRelay;
beforeAll(async () => {
  at = await startTestRelay();
  const { core } = at.callboard;
  for (const name of names) {
    const clients: TestClient[] = [];
    for (let i = 0; i < CLIENTS; i++) {
      const actions = [advertisement(`${name}.open`), advertisement(`close-${two(i)}`)];
      clients.push(await connect(core, user(name), { clientId: `tab-${two(i)}`, actions }));
    }
    for (const [i, client] of clients.entries()) if (i < DONE) await run(name, i, client);
  }
  const waits = USERS * WAITED_FOR;
  await until(async () => (await core.rpc.count(admin, {})).count === waits);
});
afterAll(() => at[Symbol.asyncDispose]());

/** Runs one command on this client. The commands of most clients end. */
async function run(name: string, i: number, client: TestClient): Promise<void> {
  const request = { userId: name, clientId: `tab-${two(i)}`, action: `${name}.open`, params: null };
  const invoked = at.callboard.core.rpc.invoke(user(name), request);
  await until(() => client.sent.length > 0);
  if (i < WAITED_FOR) return void invoked;
  await client.result(client.last);
  await invoked;
}

type Nodes<T> = { readonly nodes: readonly T[] };
type Shown = {
  readonly userId: string;
  readonly pendingRpcCount: number;
  readonly streams: Nodes<{ suffix: string; messageCount: number; lastAt: string }>;
  readonly connections: Nodes<{
    clientId: string;
    status: string;
    actions: { items: readonly { name: string }[] };
    pendingRpcs: Nodes<{ rpcId: string; action: string; ageMs: number; stage: string }>;
  }> & { completeness: { complete: boolean } };
};

it('one request shows 50 users with 20 connections each, their actions, waiting callers and streams', async () => {
  const began = performance.now();
  const answer = await at.graphql(QUERY);
  const ms = Math.round(performance.now() - began);
  expect([answer.status, answer.errors]).toEqual([200, []]);
  const users: readonly Shown[] = answer.data?.['users'].nodes;
  expect(users.map(({ userId }) => userId)).toEqual(names);
  for (const { userId: id, connections, pendingRpcCount, streams } of users) {
    expect(connections.nodes).toEqual(
      Array.from({ length: CLIENTS }, (_, i) => ({
        clientId: `tab-${two(i)}`,
        status: 'CONNECTED',
        actions: { items: [{ name: `${id}.open` }, { name: `close-${two(i)}` }] },
        pendingRpcs: {
          nodes:
            i < WAITED_FOR ? [{ rpcId: expect.any(String), action: `${id}.open`, ageMs: 0, stage: 'DISPATCHED' }] : [],
        },
      })),
    );
    expect(connections.completeness).toEqual({ complete: true });
    expect(pendingRpcCount).toBe(WAITED_FOR);
    expect(streams.nodes).toEqual(
      Array.from({ length: DONE }, (_, i) => ({
        suffix: `clients/tab-${two(i)}`,
        messageCount: i < WAITED_FOR ? 1 : 2,
        lastAt: new Date(at.clock.now()).toISOString(),
      })),
    );
  }
  const rpcs = users.flatMap(({ connections }) => connections.nodes.flatMap(({ pendingRpcs }) => pendingRpcs.nodes));
  expect(new Set(rpcs.map(({ rpcId }) => rpcId)).size).toBe(USERS * WAITED_FOR);
  expect(answer.data?.['users'].completeness).toEqual({
    complete: true,
    sources: [
      { source: 'CONNECTIONS', observed: USERS * CLIENTS, complete: true },
      { source: 'STREAMS', observed: USERS * DONE, complete: true },
    ],
  });
  console.info(`50 users x 20 connections: ${answer.text.length} characters in ${ms} ms`);
});

it('reports each list that was cut', async () => {
  const cut = QUERY.replace('users(first: 50)', 'users(first: 7)').replace(
    'connections(first: 20)',
    'connections(first: 3)',
  );
  const { users } = await at.data(
    cut.replace('completeness {\n          complete\n', 'pageInfo {\n          hasNextPage\n'),
  );
  expect(users.nodes).toHaveLength(7);
  for (const { connections } of users.nodes) {
    expect([connections.nodes.length, connections.pageInfo]).toEqual([3, { hasNextPage: true }]);
  }
});

it('is forbidden for a user, whose own part of it is not too much for one request', async () => {
  expect((await at.graphql(QUERY, { requester: 'user-00' })).code).toBe('forbidden');
  const own = QUERY.replace(/users\(first: \d+\) \{\s*nodes \{/, 'user(userId: "user-00") {').replace(
    /\}\s*completeness \{\s*complete\s*sources \{[^}]*\}\s*\}\s*\}\s*\}\s*$/,
    '} }',
  );
  const answer = await at.graphql(own, { requester: 'user-00' });
  expect([answer.status, answer.errors, answer.data?.['user'].connections.nodes.length]).toEqual([200, [], CLIENTS]);
});

it('is the query in docs/graphql.md', () => {
  expect(existsSync(PAGE)).toBe(true);
  const blocks = readFileSync(PAGE, 'utf8').matchAll(/```graphql\n([\s\S]*?)```/g);
  expect([...blocks].map(([, text]) => text)).toContain(QUERY);
});

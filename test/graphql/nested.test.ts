/** Tests that nested lists are read in batches, and continue page by page. */
import { describe, expect, it } from 'vitest';
import type { Connection } from '../../src/core/connections/connection.ts';
import { fakeCore } from './kit/fake-core.ts';
import { command, connection, pendingRpc, T0 } from './kit/rows.ts';
import { codeOf, dataOf } from './kit/run.ts';

const users = Array.from({ length: 50 }, (_, i) => `user-${String(i).padStart(2, '0')}`);
const connections = users.flatMap((user): Connection[] =>
  Array.from({ length: 20 }, (_, i) => connection(user, `c-${String(i).padStart(2, '0')}`)),
);
const waits = users.map((userId) => pendingRpc(command({ userId, clientId: 'c-03', commandId: `k-${userId}` })));
const streams = users.map((userId) => ({ userId, suffix: 'clients/c-03', messageCount: 1, firstAt: T0, lastAt: T0 }));

const coreOf = () => fakeCore({ connections, waits, streams });

const EVERYTHING = `{
  users(first: 50) {
    nodes {
      id: userId
      connectionCount
      connections(first: 20) {
        nodes { clientId actions { items { name schema } } pendingRpcs(first: 5) { nodes { rpcId ageMs } } inFlight }
      }
      pendingRpcCount
      pendingRpcs(first: 10) { nodes { commandId } }
      streams(first: 10) { nodes { key } }
    }
  }
}`;

type Nodes<T> = { nodes: T[] };
type Everything = {
  users: Nodes<{
    id: string;
    pendingRpcCount: number;
    pendingRpcs: Nodes<{ commandId: string }>;
    streams: Nodes<{ key: string }>;
    connections: Nodes<{ clientId: string; pendingRpcs: Nodes<{ rpcId: string }> }>;
  }>;
};

describe('one nested query over 50 users with 20 connections each', () => {
  it('calls core once for each kind of nested rows, however many parents there are', async () => {
    const { core, calls } = coreOf();
    await dataOf(EVERYTHING, { core });
    const counts = Object.fromEntries(
      [...new Set(calls)].map((name) => [name, calls.filter((call) => call === name).length]),
    );
    expect(counts).toEqual({
      'users.list': 1,
      'connections.ofUsers': 1,
      'history.ofUsers': 1,
      // The page of waits and their count cannot share a read, because they are read with different sizes.
      'rpc.ofUsers': 2,
      'rpc.ofClients': 1,
    });
  });

  it('returns each parent its own rows', async () => {
    const { core } = coreOf();
    const { users: page } = (await dataOf(EVERYTHING, { core })) as Everything;
    expect(page.nodes.map(({ id }) => id)).toEqual(users);
    for (const user of page.nodes) {
      expect(user.connections.nodes).toHaveLength(20);
      expect(user.pendingRpcCount).toBe(1);
      expect(user.pendingRpcs.nodes).toEqual([{ commandId: `k-${user.id}` }]);
      expect(user.streams.nodes).toEqual([{ key: `${user.id}/clients/c-03` }]);
      const waited = user.connections.nodes.filter(({ pendingRpcs }) => pendingRpcs.nodes.length > 0);
      expect(waited.map(({ clientId }) => clientId)).toEqual(['c-03']);
    }
  });
});

describe('nested pages', () => {
  const document = `query ($after: String, $status: ConnectionStatus) {
    user(userId: "user-07") {
      connections(first: 8, after: $after, status: $status) {
        edges { cursor node { clientId } } nextCursor pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }
  }`;
  type Page = {
    user: {
      connections: {
        edges: { cursor: string; node: { clientId: string } }[];
        nextCursor: string | null;
        pageInfo: Record<string, unknown>;
      };
    };
  };
  const read = async (variables: Record<string, unknown>, { core, calls } = coreOf()) => ({
    page: ((await dataOf(document, { core, variables })) as Page).user.connections,
    calls,
  });

  it('start from the batch and continue with the cursors of the listing, each row once', async () => {
    const seen: string[] = [];
    const queries: string[] = [];
    for (let after: string | null = null, turn = 0; turn < 5; turn++) {
      const { page, calls } = await read({ after });
      seen.push(...page.edges.map(({ node }) => node.clientId));
      queries.push(calls.join());
      expect(page.pageInfo).toEqual({
        hasNextPage: page.nextCursor !== null,
        hasPreviousPage: false,
        startCursor: page.edges[0]?.cursor,
        endCursor: page.edges.at(-1)?.cursor,
      });
      if ((after = page.nextCursor) === null) break;
    }
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => `c-${String(i).padStart(2, '0')}`));
    expect(queries).toEqual(['connections.ofUsers', 'connections.list', 'connections.list']);
  });

  it('use the listing when they are filtered', async () => {
    expect((await read({ status: 'CONNECTED' })).calls).toEqual(['connections.list']);
  });

  it('refuse a size out of bounds, although the batch would not', async () => {
    const { core, calls } = coreOf();
    for (const first of [0, -1, 1001]) {
      for (const field of ['connections', 'streams', 'pendingRpcs']) {
        const queries = `{ user(userId: "user-07") { ${field}(first: ${first}) { nextCursor } } }`;
        expect(await codeOf(queries, { core }), `${field} ${first}`).toBe('invalid_argument');
      }
    }
    expect(calls).toEqual([]);
  });

  it('refuse a cursor of another listing', async () => {
    const { page } = await read({});
    const { core } = coreOf();
    const variables = { after: page.nextCursor };
    const other = 'query ($after: String) { user(userId: "user-08") { connections(after: $after) { nextCursor } } }';
    expect(await codeOf(other, { core, variables })).toBe('invalid_cursor');
  });
});

/**
 * Defines the query of the query suites and its expected answer: the summary of one user, with its connections and
 * their actions.
 */
import { z } from 'zod';

/** The users of the query, with the number of connections of each. */
export const USERS = { u100: 100, u10: 10 } as const;
export type UserName = keyof typeof USERS;
export const USER_NAMES: readonly UserName[] = ['u100', 'u10'];
/** The number of actions that each client advertises. */
export const ACTIONS = 3;

export const SUMMARY = `query UserSummary($id: ID!) {
  user(userId: $id) {
    id: userId
    connectionCount
    connections(first: 100) {
      nodes {
        clientId
        instanceId
        nodeId
        status
        clientType
        connectedAt
        lastSeenAt
        actions {
          items {
            name
            summary
          }
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
    pendingRpcCount
    completeness {
      complete
    }
  }
}`;

/** Returns the advertisement of a client's action with number k. */
export function action(k: number): { readonly name: string; readonly summary: string } {
  return { name: `board.action${k}`, summary: `Does thing number ${k} for a caller` };
}

const NODE = z.object({
  clientId: z.string(),
  instanceId: z.string(),
  nodeId: z.string(),
  status: z.string(),
  clientType: z.string(),
  connectedAt: z.string(),
  lastSeenAt: z.string(),
  actions: z.object({ items: z.array(z.object({ name: z.string(), summary: z.string() })) }),
});

const USER = z.object({
  id: z.string(),
  connectionCount: z.number(),
  connections: z.object({
    nodes: z.array(NODE),
    pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
  }),
  pendingRpcCount: z.number(),
  completeness: z.object({ complete: z.boolean() }),
});

/** The relay's answer for one user. The peers serve it from memory. */
export type User = z.infer<typeof USER>;
export const ANSWER = z.object({ data: z.object({ user: USER }) });
export const SEED = z.object({ users: z.record(z.string(), USER), mode: z.string().default('') });

/** Returns the answer to the query, built without GraphQL. */
export function answerOf(user: User): object {
  const { connections, completeness } = user;
  const nodes = connections.nodes.slice(0, 100).map((node) => ({
    clientId: node.clientId,
    instanceId: node.instanceId,
    nodeId: node.nodeId,
    status: node.status,
    clientType: node.clientType,
    connectedAt: node.connectedAt,
    lastSeenAt: node.lastSeenAt,
    actions: { items: node.actions.items.map(({ name, summary }) => ({ name, summary })) },
  }));
  const { hasNextPage, endCursor } = connections.pageInfo;
  return {
    data: {
      user: {
        id: user.id,
        connectionCount: user.connectionCount,
        connections: { nodes, pageInfo: { hasNextPage, endCursor } },
        pendingRpcCount: user.pendingRpcCount,
        completeness: { complete: completeness.complete },
      },
    },
  };
}

/**
 * Defines the GraphQL schema that the peers of the query suite serve: the relay's fields over the same data, in memory
 * and with default resolvers.
 */
import { buildSchema, type GraphQLSchema } from 'graphql';
import type { User } from '../lib/summary.ts';

const SDL = /* GraphQL */ `
  type Query {
    user(userId: ID!): User
  }
  type User {
    userId: ID!
    connectionCount: Int!
    connections(first: Int! = 100): ConnectionPage!
    pendingRpcCount: Int!
    completeness: Completeness!
  }
  type ConnectionPage {
    nodes: [Connection!]!
    pageInfo: PageInfo!
  }
  type Connection {
    clientId: ID!
    instanceId: ID!
    nodeId: ID!
    status: ConnectionStatus!
    clientType: ClientType!
    connectedAt: String!
    lastSeenAt: String!
    actions: ActionList!
  }
  enum ConnectionStatus {
    CONNECTED
    DISCONNECTED
    STALE
  }
  enum ClientType {
    BROWSER
    CONSOLE
    MOBILE
    WEB
  }
  type ActionList {
    items: [Action!]!
  }
  type Action {
    name: String!
    summary: String
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
  type Completeness {
    complete: Boolean!
  }
`;

export function userSchema(users: Readonly<Record<string, User>>): GraphQLSchema {
  const schema = buildSchema(SDL);
  const query = schema.getQueryType()?.getFields();
  // The query selects `userId` under the alias `id`, and the served answer has it under that name.
  const served = new Map(Object.entries(users).map(([userId, user]) => [userId, { ...user, userId }]));
  if (query?.['user']) query['user'].resolve = (_, { userId }: { userId: string }) => served.get(userId) ?? null;
  const user = schema.getType('User');
  if (user && 'getFields' in user) {
    const connections = user.getFields()['connections'];
    if (connections && 'resolve' in connections) connections.resolve = pageOf;
  }
  return schema;
}

function pageOf({ connections }: User, { first }: { first: number }): User['connections'] {
  const { nodes, pageInfo } = connections;
  return { nodes: nodes.length > first ? nodes.slice(0, first) : nodes, pageInfo };
}

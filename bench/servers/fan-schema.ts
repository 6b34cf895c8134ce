/** Builds the schema of the GraphQL servers of the fan-out suite, and the publisher for its subscription. */
import { createPubSub, createSchema } from 'graphql-yoga';
import type { FanEvent } from '../lib/fan-event.ts';

const SDL = /* GraphQL */ `
  type Query {
    ok: Boolean
  }
  type Subscription {
    siteEvents(sessionId: ID!): SiteEvent!
  }
  type SiteEvent {
    messageId: ID!
    name: String!
    publishedAt: String!
    data: String!
  }
`;

/** Returns a schema with a subscription, and the publisher of its events. It uses Yoga's own helpers. */
export function fanSchema() {
  const bus = createPubSub<{ events: [event: FanEvent] }>();
  const siteEvents = { subscribe: () => bus.subscribe('events'), resolve: (event: FanEvent) => event };
  const schema = createSchema({ typeDefs: SDL, resolvers: { Subscription: { siteEvents } } });
  const publish = (events: readonly FanEvent[]): void => events.forEach((event) => bus.publish('events', event));
  return { schema, publish };
}

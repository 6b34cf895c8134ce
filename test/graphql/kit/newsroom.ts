/** Creates a source of events that a test controls, for tests of shared subscriptions. */
import {
  GraphQLBoolean,
  GraphQLInt,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  type GraphQLFieldConfig,
} from 'graphql';
import type { Principal } from '../../../src/core/auth/principal.ts';
import { CallboardError, fail } from '../../../src/core/errors.ts';
import { createFeed, type LiveEvent, type SharedSubscription, type Lifetime } from '../../../src/core/live.ts';

/** The news that a test publishes, and what the test can observe of the subscriptions. */
export type Newsroom = {
  readonly schema: GraphQLSchema;
  publish(room: string, text: string): void;
  /** Withdraws this user's permission to subscribe. */
  revoke(user: string): void;
  /** Returns the number of open sources. */
  sources(): number;
  /** Returns how many times a `text` was resolved. */
  executions(): number;
  /** The names of the requesters that were authorized. */
  readonly authorized: string[];
  /** Returns the number of subscriptions that have not ended. */
  lifetimes(): number;
};

type Item = { readonly text: string };
type Context = { readonly requester: Principal | null };
type Args = { readonly room: string };

const NAME = ({ requester }: Context): string =>
  requester?.kind === 'user' ? requester.userId : (requester?.kind ?? 'nobody');

/**
 * Creates a newsroom. Users may subscribe to any room except `secret`. Subscriptions to `news` are shared. `own` and
 * `late` have the same form and are not shared.
 */
export function createNewsroom(): Newsroom {
  const rooms = new Map<string, Set<(item: Item) => void>>();
  const running = new Map<Lifetime, (() => void) & { readonly user?: string }>();
  const users = new Map<Lifetime, string>();
  const authorized: string[] = [];
  let executions = 0;
  const tenureOf = (user: string): Lifetime => {
    const lifetime: Lifetime = {
      endWith(target) {
        running.set(lifetime, () => target.fail(new CallboardError('unauthenticated', 'The grant is over.')));
      },
      close() {
        running.delete(lifetime);
        users.delete(lifetime);
      },
    };
    users.set(lifetime, user);
    return lifetime;
  };
  const listen = ({ room }: Args, context: Context): SharedSubscription<Item> => {
    const user = NAME(context);
    authorized.push(user);
    if (room === 'secret') fail('forbidden', 'Not this one.');
    return {
      key: room,
      listen(push) {
        const listeners = rooms.get(room) ?? new Set();
        rooms.set(room, listeners.add(push));
        return () => void listeners.delete(push);
      },
      lifetime: tenureOf(user),
    };
  };
  const subscribe = (_: unknown, args: Args, context: Context) => {
    const { listen: hear, lifetime: lifetime } = listen(args, context);
    const feed = createFeed<Item>(() => {
      stop();
      lifetime.close();
    });
    const stop = hear(feed.push);
    lifetime.endWith(feed);
    return feed.subscription;
  };
  const count = (): void => void executions++;
  return {
    schema: schemaOf({ listen, subscribe, count }),
    authorized,
    publish: (room, text) => [...(rooms.get(room) ?? [])].forEach((push) => push({ text })),
    revoke: (user) => [...users].filter(([, of]) => of === user).forEach(([lifetime]) => running.get(lifetime)?.()),
    sources: () => [...rooms.values()].reduce((sum, { size }) => sum + size, 0),
    executions: () => executions,
    lifetimes: () => users.size,
  };
}

type Making = {
  readonly listen: (args: Args, context: Context) => SharedSubscription<Item>;
  readonly subscribe: (source: unknown, args: Args, context: Context) => AsyncIterable<unknown>;
  readonly count: () => void;
};

function schemaOf({ listen, subscribe, count }: Making): GraphQLSchema {
  const reader = new GraphQLObjectType<LiveEvent<Item>, Context>({
    name: 'Reader',
    fields: { name: { type: GraphQLString, resolve: (_, __, context) => NAME(context) } },
  });
  const item = new GraphQLObjectType<LiveEvent<Item>, Context>({
    name: 'Item',
    extensions: { shareable: true },
    fields: {
      text: {
        type: GraphQLString,
        resolve: ({ event }) => {
          count();
          return event.text;
        },
      },
      missed: { type: GraphQLInt, resolve: ({ missed }) => missed },
      /** The name of the requester that the resolver sees; `nobody` for a shared event. */
      seenBy: { type: GraphQLString, resolve: (_, __, context) => NAME(context) },
      isMine: { type: GraphQLBoolean, extensions: { perViewer: true }, resolve: (_, __, c) => NAME(c) === 'alice' },
      reader: { type: reader, resolve: (live) => live },
      later: { type: GraphQLString, resolve: async ({ event }) => event.text },
    },
  });
  const field: GraphQLFieldConfig<unknown, Context, Args> = {
    type: item,
    args: { room: { type: GraphQLString } },
    subscribe,
    resolve: (live) => live,
  };
  return new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { ok: { type: GraphQLBoolean, resolve: () => true } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: { news: { ...field, extensions: { share: listen } }, own: field },
    }),
  });
}

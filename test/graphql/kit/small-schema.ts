/** Builds a small schema with fields that fail, for tests of masking and execution. */
import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import { GraphQLError, valueFromASTUntyped } from 'graphql';
import type { Principal } from '../../../src/core/auth/principal.ts';
import { CallboardError } from '../../../src/core/errors.ts';
import { createFeed, type Feed } from '../../../src/core/live.ts';

export const SECRET = 'redis://hunter2@10.0.0.7';

/** The source of the small schema's subscriptions; tests push into it. */
export type Feeds = {
  readonly feeds: Set<Feed<number>>;
  readonly aborted: PromiseWithResolvers<void>;
  opened: PromiseWithResolvers<void>;
};
export type SmallContext = {
  readonly requester: Principal | null;
  readonly subscriptions: Feeds;
  readonly seen: Set<string>;
  readonly signal?: AbortSignal | undefined;
};

export function createFeeds(): Feeds {
  return { feeds: new Set(), aborted: Promise.withResolvers(), opened: Promise.withResolvers() };
}

const builder = new SchemaBuilder<{
  Context: SmallContext;
  Scalars: { JSON: { Input: unknown; Output: unknown }; Day: { Input: number; Output: number } };
}>({ plugins: [ComplexityPlugin], complexity: { disabled: true } });

builder.scalarType('JSON', {
  serialize: (v) => v,
  parseValue: (v) => v,
  parseLiteral: (n, v) => valueFromASTUntyped(n, v),
});
builder.scalarType('Day', {
  serialize: (value) => `day ${value}`,
  parseValue(value) {
    if (typeof value !== 'string' || !/^day \d+$/.test(value)) throw new GraphQLError('Expected "day N".');
    return Number(value.slice(4));
  },
});
const Color = builder.enumType('Color', { values: { RED: { value: 'red-ish' }, BLUE: { value: 'blue-ish' } } });

type Thing = { readonly kind: 'Cat' | 'Dog'; readonly id: number };
const Named = builder.interfaceRef<Thing>('Named').implement({
  fields: (t) => ({ id: t.exposeID('id'), name: t.string({ resolve: ({ kind, id }) => `${kind} ${id}` }) }),
});
const Cat = builder.objectRef<Thing>('Cat').implement({
  interfaces: [Named],
  isTypeOf: (value) => (value as Thing).kind === 'Cat',
  fields: (t) => ({
    lives: t.int({ resolve: () => 9 }),
    friends: t.field({
      type: [Named],
      args: { first: t.arg.int() },
      complexity: ({ first }) => ({ field: 1, multiplier: first ?? 100 }),
      resolve: ({ id }, { first }) => things.slice(id, id + (first ?? 100)),
    }),
  }),
});
const Dog = builder.objectRef<Thing>('Dog').implement({
  interfaces: [Named],
  isTypeOf: (value) => (value as Thing).kind === 'Dog',
  fields: (t) => ({
    tricks: t.stringList({ resolve: async () => ['sit', 'roll'] }),
    weight: t.float({ nullable: false, resolve: ({ id }) => (id === 3 ? null : id) as number }),
  }),
});
const Pet = builder.unionType('Pet', { types: [Cat, Dog] });
const things: readonly Thing[] = [1, 2, 3, 4].map((id) => ({ kind: id % 2 ? 'Dog' : 'Cat', id }));
const Inner = builder.inputType('Inner', { fields: (t) => ({ depth: t.int({ required: true, defaultValue: 7 }) }) });
const Filter = builder.inputType('Filter', {
  fields: (t) => ({
    text: t.string({ defaultValue: 'any' }),
    waitFor: t.field({ type: Color, required: true, defaultValue: 'red-ish' }),
    within: t.int({ required: true, defaultValue: 5 }),
    tags: t.stringList({ defaultValue: ['a'] }),
    inner: t.field({ type: Inner }),
  }),
});

builder.queryType({
  fields: (t) => ({
    hello: t.string({
      args: { name: t.arg.string({ defaultValue: 'you' }) },
      resolve: (_, { name }) => `hello ${name}`,
    }),
    count: t.int({ args: { n: t.arg.int({ required: true, defaultValue: 3 }) }, resolve: (_, { n }) => n }),
    maybe: t.string({ args: { n: t.arg.int() }, resolve: (_, args) => JSON.stringify(args) }),
    filter: t.string({ args: { filter: t.arg({ type: Filter }) }, resolve: (_, args) => JSON.stringify(args) }),
    tags: t.string({ args: { tags: t.arg.stringList() }, resolve: (_, args) => JSON.stringify(args) }),
    json: t.field({ type: 'JSON', args: { value: t.arg({ type: 'JSON' }) }, resolve: (_, { value }) => value }),
    day: t.field({ type: 'Day', args: { at: t.arg({ type: 'Day' }) }, resolve: (_, { at }) => at ?? 1 }),
    color: t.field({
      type: Color,
      args: { like: t.arg({ type: Color, defaultValue: 'blue-ish' }) },
      resolve: (_, { like }) => like,
    }),
    pets: t.field({ type: [Pet], resolve: () => things }),
    named: t.field({
      type: [Named],
      args: { first: t.arg.int() },
      complexity: ({ first }) => ({ field: 1, multiplier: first ?? 100 }),
      resolve: (_, { first }) => things.slice(0, first ?? 100),
    }),
    sized: t.field({
      type: [Named],
      args: { first: t.arg.int({ required: true, defaultValue: 3 }) },
      complexity: ({ first }) => ({ field: 1, multiplier: first }),
      resolve: (_, { first }) => things.slice(0, first),
    }),
    cat: t.field({ type: Cat, resolve: async () => things[1] }),
    strictDog: t.field({ type: Dog, resolve: () => things[2] }),
    me: t.string({
      resolve: (_, __, { requester }) => (requester?.kind === 'user' ? requester.userId : (requester?.kind ?? null)),
    }),
    boom: t.string({
      resolve: () => {
        throw new Error(SECRET);
      },
    }),
    boomLater: t.string({ resolve: async () => Promise.reject(new Error(SECRET)) }),
    boomGraphql: t.string({
      resolve: () => {
        throw new GraphQLError(SECRET);
      },
    }),
    badInt: t.int({ resolve: () => SECRET as unknown as number }),
    absent: t.string({
      resolve: () => {
        throw new CallboardError('not_found', 'There is no such thing.');
      },
    }),
    wrong: t.string({
      resolve: () => {
        throw new CallboardError('invalid_argument', 'limit: no', {
          errors: [{ parameter: 'limit', detail: 'no' }],
          cause: new Error(SECRET),
        });
      },
    }),
    stuck: t.string({
      resolve: (_, __, { subscriptions }) => {
        announce(subscriptions);
        return new Promise<string>(() => {});
      },
    }),
  }),
});
let touched = 0;
builder.mutationType({
  fields: (t) => ({
    touch: t.int({ resolve: () => ++touched }),
    touchMany: t.field({
      type: [Named],
      args: { first: t.arg.int({ required: true }) },
      complexity: ({ first }) => ({ field: 1, multiplier: first }),
      resolve: () => (touched++, things),
    }),
    stuck: t.string({
      resolve: (_, __, { signal, subscriptions }) => {
        announce(subscriptions);
        signal?.addEventListener('abort', () => subscriptions.aborted.resolve());
        return subscriptions.aborted.promise.then(() => 'aborted');
      },
    }),
  }),
});
builder.subscriptionType({
  fields: (t) => ({
    ticks: t.int({
      args: { times: t.arg.int() },
      subscribe: (_, { times }, { subscriptions }) => openFeed(subscriptions, times ?? null),
      resolve: (value) => value as number,
    }),
    tick: t.field({
      type: Cat,
      subscribe: (_, __, { subscriptions }) => openFeed(subscriptions, null),
      resolve: (_value, _args, { seen }) => (seen.add('x'), things[1]),
    }),
    seen: t.int({
      subscribe: (_, __, { subscriptions }) => openFeed(subscriptions, null),
      resolve: (_value, _args, { seen }) => (seen.add(String(Math.random())), seen.size),
    }),
    text: t.string({
      args: { size: t.arg.int({ required: true }) },
      subscribe: (_, __, { subscriptions }) => openFeed(subscriptions, null),
      resolve: (value, { size }) => `${value as number}:${'x'.repeat(size)}`,
    }),
    boomEvents: t.int({
      subscribe: (_, __, { subscriptions }) => openFeed(subscriptions, null),
      resolve: () => {
        throw new Error(SECRET);
      },
    }),
    boomStart: t.int({
      subscribe: () => {
        throw new Error(SECRET);
      },
      resolve: () => 1,
    }),
    refused: t.int({
      subscribe: () => {
        throw new CallboardError('not_found', 'There is no such command.');
      },
      resolve: () => 1,
    }),
    requester: t.string({
      subscribe: (_, __, { subscriptions }) => openFeed(subscriptions, null),
      resolve: (_value, _args, { requester }) => (requester?.kind === 'user' ? requester.userId : 'admin'),
    }),
  }),
});

function openFeed(subscriptions: Feeds, times: number | null) {
  const feed = createFeed<number>(() => subscriptions.feeds.delete(feed));
  subscriptions.feeds.add(feed);
  announce(subscriptions);
  for (let n = 1; n <= (times ?? 0); n++) feed.push(n);
  if (times !== null) feed.end();
  return toValues(feed);
}

/** Resolves `opened`, which tells the test that a resolver runs. */
function announce(subscriptions: Feeds): void {
  subscriptions.opened.resolve();
  subscriptions.opened = Promise.withResolvers();
}

/** Yields the values of a feed, without the counts of missed events. */
function toValues(feed: Feed<number>): AsyncIterableIterator<number> {
  const { subscription } = feed;
  return {
    async next() {
      const { done, value } = await subscription.next();
      return done ? { done: true, value: undefined } : { done: false, value: value.event };
    },
    async return() {
      await subscription.return();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** A schema with every difficulty that the handlers must cope with. */
export const smallSchema = builder.toSchema();

/** Tests that each library, set up as the documentation says, renews its token, and reports a refusal at once. */
import { join } from 'node:path';
import { gql, type ApolloClient } from '@apollo/client';
import type { QueryClient } from '@tanstack/query-core';
import type { Client } from '@urql/core';
import { requestSubscription, type Environment, type GraphQLTaggedNode } from 'relay-runtime';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { RECIPES } from '../kit/recipes.ts';
import { CONNECTION_EVENTS } from './documents.ts';

type Given = { readonly relay: string; readonly token: () => string };
/** Subscribes, and resolves with the code of the refusal that ends it. Returns a function that ends everything. */
type Refused = (given: Given, take: (code: unknown) => void) => Promise<() => void>;

const codeOf = (errors: readonly { readonly extensions?: Readonly<Record<string, unknown>> }[]): unknown =>
  errors[0]?.extensions?.['code'];

const recipe = (file: string): Promise<any> => import(join(RECIPES, file));

const LIBRARIES: Readonly<Record<string, Refused>> = {
  async 'Apollo Client'(given, take) {
    const client: ApolloClient = (await recipe('apollo.mjs')).createApolloClient(given);
    const subscription = client
      .subscribe({ query: gql(CONNECTION_EVENTS) })
      .subscribe(({ error }) => take(Object(error).errors && codeOf(Object(error).errors)));
    return () => {
      // `stop` alone ends no subscription: it would connect again during the tests after this one.
      subscription.unsubscribe();
      client.stop();
    };
  },
  async urql(given, take) {
    const client: Client = (await recipe('urql.mjs')).createUrqlClient(given);
    return client
      .subscription(CONNECTION_EVENTS, {})
      .subscribe(({ error }) => error && take(codeOf(error.graphQLErrors))).unsubscribe;
  },
  async Relay(given, take) {
    const environment: Environment = (await recipe('relay-environment.mjs')).createRelayEnvironment(given);
    const subscription: { default: GraphQLTaggedNode } = await recipe(
      'app/__generated__/OverviewSubscription.graphql.js',
    );
    const { dispose } = requestSubscription(environment, {
      subscription: subscription.default,
      variables: {},
      onError: (error) => take(codeOf(Object(error).source.errors)),
    });
    return dispose;
  },
  async 'TanStack Query'(given, take) {
    const onRefused = ({ code }: { readonly code: unknown }): void => take(code);
    const made: { queries: QueryClient; stop: () => void } = (await recipe('tanstack.mjs')).createQueries({
      ...given,
      onRefused,
    });
    return made.stop;
  },
  async 'fetch and graphql-sse'(given, take) {
    const { subscribe } = (await recipe('plain.mjs')).createRelayClient(given);
    return subscribe(
      CONNECTION_EVENTS,
      {},
      { next: () => undefined, error: ({ code }: { readonly code: unknown }) => take(code) },
    );
  },
};

let relay: RealRelay;
beforeEach(async () => void (relay = await startRealRelay()));
afterEach(async () => {
  vi.restoreAllMocks();
  await relay[Symbol.asyncDispose]();
});

describe.each(Object.entries(LIBRARIES))('%s, as the documentation sets it up', (_name, refused) => {
  test('ends a subscription with a wrong token at once, and says why', async () => {
    const requests = vi.spyOn(globalThis, 'fetch');
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const stop = await refused({ relay: relay.url, token: () => 'a-wrong-token' }, resolve);
    expect(await promise).toBe('unauthenticated');
    // One request, and one more in case the token function has another token.
    expect(requests.mock.calls.length).toBe(2);
    stop();
  });

  test('opens a subscription with the token that it gets after a refusal', async () => {
    const tokens = ['an-old-token'];
    const codes: unknown[] = [];
    const requests = vi.spyOn(globalThis, 'fetch');
    const statuses = () =>
      requests.mock.calls.map(([url], i) => [String(url), requests.mock.settledResults[i]?.value?.status]);
    const token = (): string => tokens.shift() ?? relay.admin;
    const stop = await refused({ relay: relay.url, token }, (code) => codes.push(code));
    const stream = `${relay.url}/graphql/stream`;
    await expect.poll(statuses).toEqual([
      [stream, 401],
      [stream, 200],
    ]);
    expect(codes).toEqual([]);
    stop();
  });
});

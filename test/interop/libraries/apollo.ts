/** Sets up Apollo Client as docs/graphql-clients.md describes. */
import { join } from 'node:path';
import { CombinedGraphQLErrors, gql, type ApolloClient } from '@apollo/client';
import { RECIPES } from '../kit/recipes.ts';
import { CodedError, type Answer, type CachingClient, type Variables } from './cache.ts';

type Recipe = { createApolloClient(given: { relay: string; token: () => string }): ApolloClient };

export async function openApollo(relay: string, token: string): Promise<CachingClient> {
  const { createApolloClient }: Recipe = await import(join(RECIPES, 'apollo.mjs'));
  const client = createApolloClient({ relay, token: () => token });
  return {
    watch(query, variables = {}) {
      const watched = client.watchQuery<Answer>({ query: gql(query), variables, fetchPolicy: 'cache-first' });
      let latest: Answer | null = null;
      const { unsubscribe } = subscribed(watched, (data) => (latest = data));
      return {
        current: () => latest,
        more: async (next: Variables) => void (await watched.fetchMore({ variables: next })),
        [Symbol.dispose]: unsubscribe,
      };
    },
    load: (query, variables = {}) =>
      answered(client.query<Answer>({ query: gql(query), variables, fetchPolicy: 'network-only' })),
    mutate: (mutation, variables = {}) => answered(client.mutate<Answer>({ mutation: gql(mutation), variables })),
    follow(query, variables = {}) {
      const events: Answer[] = [];
      const subscription = client
        .subscribe<Answer>({ query: gql(query), variables })
        .subscribe(({ data }) => void (data && events.push(data)));
      return { events, [Symbol.dispose]: () => subscription.unsubscribe() };
    },
    [Symbol.dispose]: () => client.stop(),
  };
}

type Watched = ReturnType<ApolloClient['watchQuery']>;

function subscribed(watched: Watched, take: (data: Answer) => void): { readonly unsubscribe: () => void } {
  const subscription = watched.subscribe(({ data, dataState }) => {
    if (dataState === 'complete') take(data as Answer);
  });
  return { unsubscribe: () => subscription.unsubscribe() };
}

async function answered(asked: Promise<{ data?: Answer | undefined }>): Promise<Answer> {
  try {
    return (await asked).data ?? {};
  } catch (error) {
    if (!CombinedGraphQLErrors.is(error)) throw error;
    throw new CodedError(error.message, error.errors[0]?.extensions?.['code']);
  }
}

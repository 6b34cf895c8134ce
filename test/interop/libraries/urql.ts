/** Sets up urql with graphcache as docs/graphql-clients.md describes. */
import { join } from 'node:path';
import { gql, type Client, type OperationResult } from '@urql/core';
import { RECIPES } from '../kit/recipes.ts';
import { CodedError, type Answer, type CachingClient, type Variables, type Watch } from './cache.ts';

type Recipe = { createUrqlClient(given: { relay: string; token: () => string }): Client };

export async function openUrql(relay: string, token: string): Promise<CachingClient> {
  const { createUrqlClient }: Recipe = await import(join(RECIPES, 'urql.mjs'));
  const client = createUrqlClient({ relay, token: () => token });
  return {
    watch: (query, variables = {}) => watch(client, query, variables),
    load: async (query, variables = {}) =>
      answered(await client.query(gql(query), variables, { requestPolicy: 'network-only' }).toPromise()),
    mutate: async (mutation, variables = {}) => answered(await client.mutation(gql(mutation), variables).toPromise()),
    follow(query, variables = {}) {
      const events: Answer[] = [];
      const { unsubscribe } = client
        .subscription(gql(query), variables)
        .subscribe(({ data }) => void (data && events.push(data)));
      return { events, [Symbol.dispose]: unsubscribe };
    },
    [Symbol.dispose]: () => undefined,
  };
}

/** Watches a query. A query of the next page has other variables; `relayPagination` joins the pages in the answer. */
function watch(client: Client, query: string, variables: Variables): Watch {
  let latest: Answer | null = null;
  const follow = (asked: Variables): (() => void) =>
    client
      .query(gql(query), asked, { requestPolicy: 'cache-first' })
      .subscribe(({ data, stale }) => void (data && !stale && (latest = data))).unsubscribe;
  let stop = follow(variables);
  return {
    current: () => latest,
    async more(next) {
      stop();
      answered(await client.query(gql(query), { ...variables, ...next }).toPromise());
      stop = follow({ ...variables, ...next });
    },
    [Symbol.dispose]: () => stop(),
  };
}

function answered({ data, error }: OperationResult<Answer>): Answer {
  if (!error) return data ?? {};
  throw new CodedError(error.message, error.graphQLErrors[0]?.extensions['code']);
}

/**
 * Tests Apollo's link for automatic persisted queries. The relay does not offer them, and refuses them as their
 * protocol says.
 */
import { createHash } from 'node:crypto';
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { expect, test } from 'vitest';
import { startTestRelay } from '../../relay/kit/test-relay.ts';

const QUERIES = [gql('query First { pendingRpcCount { count } }'), gql('query Second { users { nodes { userId } } }')];

test('Apollo falls back to the whole document, and sends no more hashes', async () => {
  await using relay = await startTestRelay();
  const sent: string[][] = [];
  const http = new HttpLink({
    uri: `${relay.url}/graphql`,
    headers: { authorization: `Bearer ${await relay.token('admin')}` },
    fetch: (url, init) => {
      sent.push(Object.keys(JSON.parse(String(init?.body))).sort());
      return fetch(url, init);
    },
  });
  const persisted = new PersistedQueryLink({ sha256: (text) => createHash('sha256').update(text).digest('hex') });
  const client = new ApolloClient({ link: persisted.concat(http), cache: new InMemoryCache() });

  const answers = [];
  for (const query of QUERIES) answers.push((await client.query<Record<string, object>>({ query })).data);
  expect(answers).toMatchObject([{ pendingRpcCount: { count: 0 } }, { users: { nodes: [] } }]);
  const whole = ['operationName', 'query', 'variables'];
  expect(sent.map((members) => members.filter((name) => name !== 'extensions'))).toEqual([
    ['operationName', 'variables'],
    whole,
    whole,
  ]);
  client.stop();
});

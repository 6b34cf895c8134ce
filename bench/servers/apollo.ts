/** Serves the schema of the query suite with Apollo Server, a peer of the relay. */
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import type { Started } from '../lib/child.ts';
import { SEED } from '../lib/summary.ts';
import { userSchema } from './user-schema.ts';

export async function start(given: unknown): Promise<Started> {
  const server = new ApolloServer({ schema: userSchema(SEED.parse(given).users) });
  const { url } = await startStandaloneServer(server, { listen: { port: 0, host: '127.0.0.1' } });
  return { port: Number(new URL(url).port) };
}

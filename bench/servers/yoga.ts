/** Serves the schema of the query suite with GraphQL Yoga, a peer of the relay, plain or with its jit plugin. */
import { useGraphQlJit } from '@envelop/graphql-jit';
import { createYoga } from 'graphql-yoga';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { SEED } from '../lib/summary.ts';
import { userSchema } from './user-schema.ts';

/** Starts the server. `mode` of the seed: empty for plain Yoga, `jit` for Yoga with its jit plugin. */
export async function start(given: unknown): Promise<Started> {
  const { users, mode } = SEED.parse(given);
  const plugins = mode === 'jit' ? [useGraphQlJit()] : [];
  const yoga = createYoga({ schema: userSchema(users), logging: false, plugins });
  return { port: await listen((request, response) => void yoga(request, response)) };
}

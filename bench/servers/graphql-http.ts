/** Serves the schema of the query suite with graphql-http over node:http, a peer of the relay. */
import { createHandler } from 'graphql-http/lib/use/http';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { SEED } from '../lib/summary.ts';
import { userSchema } from './user-schema.ts';

export async function start(given: unknown): Promise<Started> {
  return { port: await listen(createHandler({ schema: userSchema(SEED.parse(given).users) })) };
}

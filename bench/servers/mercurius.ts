/** Serves the schema of the query suite with mercurius on fastify, a peer of the relay, with its JIT compiler. */
import fastify from 'fastify';
import mercurius from 'mercurius';
import type { Started } from '../lib/child.ts';
import { SEED } from '../lib/summary.ts';
import { userSchema } from './user-schema.ts';

export async function start(given: unknown): Promise<Started> {
  const app = fastify();
  await app.register(mercurius.default, { schema: userSchema(SEED.parse(given).users), jit: 1 });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return { port: Number(new URL(url).port) };
}

/**
 * Runs the clients of several users in one process, for the growth suite. Each client returns the params of its calls.
 */
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { END } from '../lib/rpc.ts';
import { start as open } from './rpc-client.ts';

export async function start(given: unknown): Promise<Started> {
  await Promise.all(z.array(END).parse(given).map(open));
  return {};
}

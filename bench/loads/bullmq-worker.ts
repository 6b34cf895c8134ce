/** Answers the calls of the call suites with a BullMQ worker, which has the role of a client. */
import { Worker } from 'bullmq';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { IN_FLIGHT } from '../lib/rpc.ts';

/** Starts a worker that returns the input of each job. */
export async function start(given: unknown): Promise<Started> {
  const { port } = z.object({ port: z.number() }).parse(given);
  const work = async ({ data }: { data: unknown }): Promise<object> => ({ ok: data });
  const worker = new Worker('calls', work, { connection: { port, host: '127.0.0.1' }, concurrency: IN_FLIGHT });
  await worker.waitUntilReady();
  const setConcurrency = (given: unknown): null => {
    worker.concurrency = z.number().parse(given);
    return null;
  };
  return { acts: { concurrency: setConcurrency } };
}

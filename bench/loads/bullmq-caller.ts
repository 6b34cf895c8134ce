/** Makes the calls of the call suites with BullMQ: adds jobs and waits for their results. */
import { Queue, QueueEvents } from 'bullmq';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { drive, DRIVE } from '../lib/drive.ts';
import { PAYLOAD } from '../lib/rpc.ts';

/** Starts the caller. Each call adds a job and waits until it is finished. */
export async function start(given: unknown): Promise<Started> {
  const { port } = z.object({ port: z.number() }).parse(given);
  const connection = { port, host: '127.0.0.1' };
  const queue = new Queue('calls', { connection });
  const events = new QueueEvents('calls', { connection });
  events.setMaxListeners(0);
  await events.waitUntilReady();
  const call = async (): Promise<unknown> =>
    (await queue.add('call', PAYLOAD, { removeOnComplete: 1000 })).waitUntilFinished(events);
  const result = JSON.stringify(await call());
  if (result !== JSON.stringify({ ok: PAYLOAD })) throw new Error(`A job came back as ${result.slice(0, 80)}.`);
  return { acts: { drive: (asked) => drive(call, DRIVE.parse(asked)) } };
}

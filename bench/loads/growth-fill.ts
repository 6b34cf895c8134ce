/** Fills a relay with events over `POST /ingest`, in batches. */
import { Agent, request, type RequestOptions } from 'node:http';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';

const FILL = z.object({ port: z.number(), token: z.string(), event: z.unknown(), count: z.number() });

/** The maximum number of events in one request. */
const BATCH = 100;
/** The number of requests in flight. */
const LANES = 4;

export async function start(): Promise<Started> {
  return { acts: { fill: (given) => fill(FILL.parse(given)) } };
}

/** Ingests the event this many times. The relay gives each copy its own id. */
async function fill({ port, token, event, count }: z.infer<typeof FILL>): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  let left = count;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      const size = Math.min(left, BATCH);
      left -= size;
      const body = JSON.stringify(Array.from({ length: size }, () => event));
      const options = { agent, port, host: '127.0.0.1', path: '/ingest', method: 'POST', headers };
      await post(options, { body, retained: size });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane)).finally(() => agent.destroy());
  return count;
}

type Batch = { readonly body: string; readonly retained: number };

function post(options: RequestOptions, { body, retained }: Batch): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const asked = request(options, async (response) => {
    let text = '';
    for await (const part of response) text += String(part);
    const good = text.split('"retained":true').length - 1;
    if (good === retained) resolve();
    else
      reject(new Error(`Of ${retained} events ${good} were retained (${response.statusCode}): ${text.slice(0, 160)}`));
  });
  asked.on('error', reject);
  asked.end(body);
  return promise;
}

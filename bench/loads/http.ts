/**
 * Sends requests over kept-alive connections. Each connection sends its next request as soon as the previous one is
 * answered. Requests are prepared as bytes, and responses are parsed only to find their ends, so that the load costs
 * less than the server.
 */
import { connect, type Socket } from 'node:net';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { quantile } from '../lib/numbers.ts';
import { createAnswerReader } from '../lib/http-answers.ts';

/**
 * The form of the options. `count`: the number of answers after which the run ends early. `awake`: the process never
 * sleeps, so that the server does not spend time on waking it; the load then needs its own core.
 */
const RUN = z.object({
  port: z.number(),
  requests: z.array(z.string()),
  connections: z.number(),
  ms: z.number(),
  count: z.number().default(Infinity),
  awake: z.boolean().default(false),
});

/**
 * The form of a run's results. Times are in milliseconds. `count` includes answers that arrived after the time was
 * over.
 */
export const HTTP_RUN = z.object({
  count: z.number(),
  ms: z.number(),
  p50: z.number(),
  p99: z.number(),
  bytes: z.number(),
});
type HttpRun = z.infer<typeof HTTP_RUN>;

const ONCE = RUN.pick({ port: true, requests: true });

/** The maximum number of latencies that are kept (the first ones of a run) for computing percentiles. */
const LATENCIES = 400_000;

export async function start(): Promise<Started> {
  return { acts: { run: (given) => run(RUN.parse(given)), once: (given) => once(ONCE.parse(given)) } };
}

function run({ port, requests, connections, ms, count: most, awake }: z.infer<typeof RUN>): Promise<HttpRun> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpRun>();
  const latencies = new Float64Array(LATENCIES);
  const sockets: Socket[] = [];
  const texts = requests.map((text) => Buffer.from(text));
  let count = 0;
  let size = 0;
  let open = connections;
  const began = performance.now();
  const until = began + ms;
  const done = (): void => {
    if (--open > 0) return;
    for (const socket of sockets) socket.destroy();
    const sorted = latencies.subarray(0, Math.min(count, LATENCIES)).sort();
    const took = performance.now() - began;
    resolve({ count, ms: took, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), bytes: size });
  };
  for (let i = 0; i < connections; i++) {
    let sent = 0;
    const next = numbered(texts[i % texts.length] ?? Buffer.alloc(0), i);
    const reader = createAnswerReader((length, status) => {
      if (status !== 200) return reject(new Error(`It answered ${status}.`));
      const now = performance.now();
      if (count < LATENCIES) latencies[count] = now - sent;
      count++;
      size = length;
      if (now >= until || count >= most) return done();
      sent = now;
      socket.write(next());
    });
    const socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: Buffer.alloc(65_536), callback: (read, buffer) => (reader(buffer, read), true) },
    });
    socket.on('connect', () => {
      sent = performance.now();
      socket.write(next());
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('It closed a connection.')));
    sockets.push(socket);
  }
  const sleeps = awake ? keepAwake() : () => {};
  return promise.finally(() => {
    sleeps();
    sockets.forEach((socket) => socket.destroy());
  });
}

/** Keeps the process from sleeping until the returned function is called. */
function keepAwake(): () => void {
  let next = setImmediate(function again() {
    next = setImmediate(again);
  });
  return () => clearImmediate(next);
}

/** The placeholder for a request's number, with as many digits. Requests without it are all equal. */
export const NUMBER = '#'.repeat(12);
/** The number of different numbers that one connection may use during the life of this process. */
const NUMBERS = 1_000_000_000;
let used = 0;

/**
 * Returns a function that returns a request. If the request contains the placeholder, each returned request has another
 * number.
 */
function numbered(request: Buffer, connection: number): () => Buffer {
  const at = request.indexOf(NUMBER);
  if (at < 0) return () => request;
  const own = Buffer.from(request);
  return () => {
    own.write(String((connection % 1_000) * NUMBERS + used++).padStart(NUMBER.length, '0'), at);
    return Buffer.from(own);
  };
}

/** Sends one request and returns the response, including its head. */
function once({ port, requests }: z.infer<typeof ONCE>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const parts: Buffer[] = [];
  const socket = connect({ port, host: '127.0.0.1' });
  const reader = createAnswerReader(() => resolve(Buffer.concat(parts).toString()));
  socket.on('data', (part: Buffer) => {
    parts.push(part);
    reader(part, part.length);
  });
  socket.on('error', reject);
  socket.write(numbered(Buffer.from(requests[0] ?? ''), 0)());
  return promise.finally(() => socket.destroy());
}

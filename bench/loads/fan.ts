/** Publishes events over HTTP and waits until they have arrived at many open streams. */
import { connect, type Socket } from 'node:net';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { fanEvent, ingested, type FanEvent } from '../lib/fan-event.ts';
import { createAnswerReader } from '../lib/http-answers.ts';
import { openReader, type Reader } from '../lib/reader.ts';

/** The form of the endpoint that receives events. `form`: how events are encoded for it. */
const ENDPOINT = z.object({ port: z.number(), path: z.string(), token: z.string(), form: z.enum(['ingest', 'plain']) });
const OPEN = z.object({
  command: z.array(z.string()),
  port: z.number(),
  streams: z.number(),
  requests: z.array(z.string()),
  answer: z.string(),
  marker: z.string(),
  endpoint: ENDPOINT,
  /** The number of bytes that one event should have when it is sent. */
  wireBytes: z.number(),
});
const PHASE = z.object({ name: z.string(), window: z.number(), batch: z.number(), ms: z.number() });
const NAMED = z.object({ name: z.string() });
export const OPENED = z.object({ wireBytes: z.number(), sample: z.string() });
/** The form of a phase's results. `frames`: the number of events that arrived, over all streams. */
export const PHASE_RUN = z.object({ frames: z.number(), ms: z.number(), lost: z.number() });

/**
 * The fraction of an event's deliveries after which the publisher continues, so that a few slow streams do not delay
 * all others.
 */
const ENOUGH = 0.97;

type EndpointAt = z.infer<typeof ENDPOINT>;
type Opened = {
  readonly reader: Reader;
  readonly endpoint: EndpointAt;
  readonly streams: number;
  readonly chars: number;
};
type Publisher = Disposable & { publish(events: readonly FanEvent[]): Promise<void> };

let published = 0;
const next = (chars: number): FanEvent => fanEvent(published++, chars);

export async function start(): Promise<Started> {
  const opened = new Map<string, Opened>();
  const of = (name: string): Opened => opened.get(name) ?? missing(name);
  return {
    acts: {
      async open(given) {
        const { name } = NAMED.parse(given);
        const { one, said } = await open(OPEN.parse(given));
        opened.set(name, one);
        return said;
      },
      phase(given) {
        const { name, ...phase } = PHASE.parse(given);
        return run(of(name), phase);
      },
      async close(given) {
        const { name } = NAMED.parse(given);
        await opened.get(name)?.reader[Symbol.asyncDispose]();
        return opened.delete(name);
      },
    },
  };
}

function missing(name: string): never {
  throw new Error(`Nothing was opened for ${name}.`);
}

/** The length of the text in the first sample. It is then adjusted until an event has the wanted number of bytes. */
const FIRST_CHARS = 100;
/** The number of samples, of which the shortest one counts. */
const SAMPLES = 3;
/** How long to wait for the rest of what a stream sends at once, in milliseconds. */
const SETTLE_MS = 100;

async function open({ command, endpoint: at, wireBytes, ...options }: z.infer<typeof OPEN>) {
  const first = await sampleOf(at, FIRST_CHARS, options);
  const chars = Math.max(1, FIRST_CHARS + wireBytes - first.length);
  const sample = await sampleOf(at, chars, options);
  const reader = await openReader(command, options);
  const one = { reader, endpoint: at, streams: options.streams, chars };
  return { one, said: { wireBytes: sample.length, sample } };
}

async function run(
  { reader, endpoint: at, streams, chars }: Opened,
  { window, batch, ms }: Omit<z.infer<typeof PHASE>, 'name'>,
) {
  await reader.quiet();
  // Each run opens a new connection, because servers close connections that were idle during other runs.
  using publisher = openPublisher(at);
  const base = reader.events;
  const began = performance.now();
  let sent = 0;
  do {
    await publisher.publish(Array.from({ length: batch }, () => next(chars)));
    sent += batch;
    await reader.until(base + streams * ENOUGH * Math.max(0, sent - (window - 1) * batch));
  } while (performance.now() - began < ms);
  await reader.until(base + streams * sent * ENOUGH);
  const took = performance.now() - began;
  const inTime = reader.events - base;
  await reader.quiet();
  const frames = reader.events - base;
  return { frames, ms: (took * frames) / inTime, lost: streams * sent - frames };
}

/** Returns a publisher that posts over one kept-alive connection and resolves with each answer. */
function openPublisher({ port, path, token, form }: EndpointAt): Publisher {
  let waiting: PromiseWithResolvers<void> | null = null;
  const read = createAnswerReader((_, status) => {
    if (status === 200) waiting?.resolve();
    else waiting?.reject(new Error(`The endpoint for events answered ${status}.`));
  });
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.on('data', (bytes: Buffer) => read(bytes, bytes.length));
  socket.on('error', (error) => waiting?.reject(error));
  socket.on('close', () => waiting?.reject(new Error('The endpoint for events closed its connection.')));
  return {
    publish(events) {
      waiting = Promise.withResolvers();
      const body = JSON.stringify(form === 'plain' ? events : events.map(ingested));
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      return waiting.promise;
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

type Stream = Pick<z.infer<typeof OPEN>, 'port' | 'requests' | 'answer' | 'marker'>;

/** Returns the shortest of several texts in which one stream received one event. Pings make a text longer. */
async function sampleOf(at: EndpointAt, chars: number, { port, requests, answer, marker }: Stream): Promise<string> {
  const texts: string[] = [];
  let text = '';
  let told: (() => void) | null = null;
  using publisher = openPublisher(at);
  const socket = connect({ port, host: '127.0.0.1' });
  const until = async (done: () => boolean): Promise<void> => {
    while (!done()) await new Promise<void>((resolve) => (told = resolve));
    await sleep(SETTLE_MS);
  };
  socket.on('data', (part: Buffer) => {
    text += part.toString('latin1');
    told?.();
  });
  socket.write(requests[0] ?? '', 'latin1');
  await until(() => text !== '');
  if (answer !== '') socket.write(Buffer.from(answer, 'hex'));
  await sleep(SETTLE_MS);
  for (let i = 0; i < SAMPLES; i++) {
    text = '';
    await publisher.publish([next(chars)]);
    await until(() => text.includes(marker));
    texts.push(text);
  }
  socket.destroy();
  return texts.sort((a, b) => a.length - b.length)[0] ?? '';
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

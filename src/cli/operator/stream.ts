/** Follows a subscription of the relay over server-sent events, and reconnects when the stream breaks. */
import { backoffMs, BACKOFF_BASE_MS, BACKOFF_CAP_MS } from '../../clients/link/backoff.ts';
import { sleep, type Clock } from '../../clients/link/clock.ts';
import { parseObject } from '../../clients/link/relay-request.ts';
import { createSseParser } from '../../clients/site/sse.ts';
import { OPERATOR_EXIT, OperatorFailure } from './failure.ts';
import { bodyOf, throwErrors, type SentOperation } from './relay.ts';
import { withWords } from './wire.ts';

/** The maximum length of one event, in characters. A longer one ends the stream. */
const EVENT_CHARS = 4 * 1024 * 1024;
/** The codes of errors after which the same request may succeed later. */
const PASSING: readonly string[] = ['unreachable', 'bad_answer', 'store_unavailable', 'draining', 'rate_limited'];

export type Following<Data> = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onData: (data: Data) => void;
  /** Called when an open stream breaks. Events may be missing until it is open again. */
  readonly onGap: () => void;
};

/**
 * Passes the data of each event to `onData`. Rejects with the signal's reason when the signal is aborted. Rejects with
 * OperatorFailure when the relay refuses the subscription, and when the relay cannot be reached before the stream has
 * been open once.
 */
export async function followStream<Data>(operation: SentOperation, following: Following<Data>): Promise<never> {
  const { clock, signal, onGap } = following;
  let opened = false;
  for (let attempt = 0; ; attempt++) {
    const fault = await readStream(operation, following, () => {
      opened = true;
      attempt = 0;
    }).catch((error: unknown) => error);
    signal.throwIfAborted();
    if (fault instanceof Error && !(opened && isPassing(fault))) throw fault;
    if (attempt === 0) onGap();
    const bounds = { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS, random: Math.random };
    await sleep(clock, backoffMs(attempt, bounds), signal);
  }
}

function isPassing(fault: Error): boolean {
  return fault instanceof OperatorFailure && PASSING.includes(fault.code);
}

/** Reads one stream. Resolves when the relay has ended it. */
async function readStream<Data>(
  operation: SentOperation,
  { signal, onData }: Following<Data>,
  onOpen: () => void,
): Promise<void> {
  const response = await open(operation, signal);
  if (!response.ok || !response.body) {
    const body = parseObject(await response.text()) ?? {};
    throwErrors(body);
    bodyOf({ status: response.status, body, retryAfterMs: null });
    throw new OperatorFailure(OPERATOR_EXIT.unreachable, 'bad_answer', `HTTP ${response.status} without a stream.`);
  }
  onOpen();
  const parser = createSseParser(EVENT_CHARS);
  for await (const bytes of unbroken(response.body)) {
    for (const { event, data } of parser.push(bytes)) {
      if (event === 'complete') return;
      if (event === 'next') onData(dataOf(operation.name, data));
    }
  }
}

async function open({ url, body, token }: SentOperation, signal: AbortSignal): Promise<Response> {
  const headers = {
    authorization: `Bearer ${await token()}`,
    'content-type': 'application/json',
    accept: 'text/event-stream',
  };
  return fetch(url, { method: 'POST', headers, body, signal }).catch(() => {
    throw broken(`${URL.parse(url)?.origin ?? url}: The relay could not be reached.`);
  });
}

async function* unbroken(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch {
    throw broken('The stream broke.');
  }
}

function broken(message: string): OperatorFailure {
  return new OperatorFailure(OPERATOR_EXIT.unreachable, 'unreachable', message);
}

function dataOf<Data>(operation: string, text: string): Data {
  const body = parseObject(text) ?? {};
  throwErrors(body);
  return withWords(operation, body['data'] as Data);
}

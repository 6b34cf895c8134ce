/** Follows a subscription of the relay over server-sent events, and reconnects if the stream breaks. */
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs } from '../clients/link/reconnect.ts';
import { sleep, type Clock } from '../clients/link/platform.ts';
import type { StreamAnswer } from '../clients/live/stream.ts';
import { parseObject } from '../protocol/json.ts';
import { OperatorFailure, EXIT } from './exit-codes.ts';
import { type SentOperation, withinTime, throwErrors, bodyOf, badAnswer } from './relay.ts';
import { withWords } from './enum-words.ts';

/**
 * A stream that is silent for this time counts as broken, in milliseconds. The relay sends a comment every 20 seconds.
 */
const SILENT_MS = 60_000;

/** The error codes after which the same request may succeed later. */
const PASSING: readonly string[] = ['unreachable', 'bad_answer', 'store_unavailable', 'draining', 'rate_limited'];

type Following<Data> = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onData: (data: Data) => void;
  /** Called when an open stream breaks. Events may be lost until it is open again. */
  readonly onGap: () => void;
};

/**
 * Passes the data of each event to `onData`. Rejects with the signal's reason if the signal is aborted. Rejects with
 * OperatorFailure if the relay refuses the subscription, or if it cannot be reached before the stream was open for the
 * first time.
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

/** Reads one stream. Resolves when the relay has completed it. */
async function readStream<Data>(
  { name, token, ...operation }: SentOperation,
  { clock, signal, onData }: Following<Data>,
  onOpen: () => void,
): Promise<void> {
  // Loaded only now, because most verbs do not follow anything.
  const { runStream, StreamFailure } = await import('../clients/live/stream.ts');
  let opened = false;
  const silence = new AbortController();
  const listen = (): (() => void) => clock.after(SILENT_MS, () => silence.abort(SILENT));
  let stop = listen();
  try {
    await runStream({
      ...operation,
      token: await token(),
      signal: AbortSignal.any([signal, silence.signal]),
      fetch: withinTime(clock),
      onBytes() {
        stop();
        stop = listen();
      },
      onOpen() {
        opened = true;
        onOpen();
      },
      onResult(result) {
        throwErrors(result);
        onData(withWords(name, result['data'] as Data));
      },
    });
  } catch (error) {
    if (!(error instanceof StreamFailure)) throw error;
    if (error.answer) throwAnswer(error.answer);
    const origin = URL.parse(operation.url)?.origin ?? operation.url;
    const message = opened ? 'The stream broke.' : `${origin}: The relay could not be reached.`;
    throw new OperatorFailure(EXIT.unreachable, 'unreachable', message);
  } finally {
    stop();
  }
}

const SILENT = new OperatorFailure(EXIT.unreachable, 'unreachable', 'The relay is silent.');

/** Throws the refusal in a response that is not a stream. */
function throwAnswer({ status, text }: StreamAnswer): never {
  const body = parseObject(text) ?? {};
  throwErrors(body);
  bodyOf({ status, body, retryAfterMs: null });
  throw badAnswer(`HTTP ${status} without a stream.`);
}

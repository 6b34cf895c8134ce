/** Subscribes to a site's events, reconnects, and yields a gap after each reconnect. */
import { parseObject, textOf } from '../link/relay-request.ts';
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs } from '../link/backoff.ts';
import { sleep, systemClock, type Clock } from '../link/clock.ts';
import { takeToken } from '../link/token.ts';
import { Interrupted, openConnection } from './connection.ts';
import { SiteError } from './errors.ts';
import type { SseFrame } from './sse.ts';
import type { SiteClientOptions, SiteEvent, SiteGap, SubscribeOptions } from './types.ts';

/** A connection that was live for this time, in milliseconds, resets the backoff. */
const STABLE_MS = 10_000;
/** The longest delay before a reconnect that the relay may ask for, in milliseconds. */
const LONGEST_AFTER_MS = 300_000;
/** Codes with which the relay ends a stream that may be opened again. */
const TEMPORARY_CODES: ReadonlySet<string> = new Set([
  'draining',
  'store_unavailable',
  'node_lost',
  'rate_limited',
  'internal',
]);

const MESSAGES: Readonly<Record<string, string | undefined>> = {
  session_inactive: 'The session is over.',
  unauthenticated: 'The grant is over.',
};

type State = {
  /** The time at which the last live connection last received something; null when there was none. */
  lastLive: number | null;
  /**
   * The time at which the current connection became live, and the time at which it last received something; null while
   * it is not live.
   */
  live: { readonly since: number; heardAt: number } | null;
  attempt: number;
  /** The last token that the relay refused. It is not tried again. */
  refused: string | null;
  token: string;
};

type Following = {
  /** Whether the token source is a function, which may give another token. */
  readonly renewable: boolean;
  readonly state: State;
  readonly clock: Clock;
  readonly onStatus: SubscribeOptions['onStatus'] | undefined;
};

/** Yields live events until the session or the grant ends, and a gap after each reconnect. */
export async function* subscribe(
  options: SiteClientOptions,
  { names, signal, onStatus }: SubscribeOptions & { readonly signal: AbortSignal },
): AsyncGenerator<SiteEvent | SiteGap, void> {
  const clock = options.clock ?? systemClock;
  const state: State = { lastLive: null, live: null, attempt: 0, refused: null, token: '' };
  const token = (): Promise<string> => freshToken(options, state);
  const heard = (): void => {
    if (state.live) state.live.heardAt = clock.now();
  };
  try {
    for (;;) {
      onStatus?.('connecting');
      const connection = openConnection({ ...options, token, clock, names, signal, heard });
      const renewable = typeof options.token !== 'string';
      const afterMs = yield* untilBroken(connection, { state, clock, renewable, onStatus });
      onStatus?.('waiting');
      await sleep(clock, waitMs(state, afterMs, options.random ?? Math.random), signal);
    }
  } catch (error) {
    // An abort ends the iteration without an error.
    if (!signal.aborted) throw error;
  }
}

/**
 * Yields what one connection receives until it ends. Then returns the minimum delay before reconnecting, in
 * milliseconds, or throws SiteError when reconnecting is of no use.
 */
async function* untilBroken(
  connection: AsyncGenerator<SseFrame, never>,
  { state, clock, renewable, onStatus }: Following,
): AsyncGenerator<SiteEvent | SiteGap, number> {
  try {
    for await (const frame of connection) {
      if (frame.event === 'callboard.ready') {
        state.live = { since: clock.now(), heardAt: clock.now() };
        state.refused = null;
        onStatus?.('live');
        if (state.lastLive !== null) yield { type: 'gap', since: state.lastLive };
      } else if (frame.event === 'callboard.closed') throw endOf(frame);
      else {
        const event = eventOf(frame);
        if (event) yield event;
      }
    }
    return 0;
  } catch (error) {
    if (error instanceof Interrupted) return error.afterMs;
    const refused = error instanceof SiteError && error.code === 'unauthenticated' && state.token !== state.refused;
    if (!refused || !renewable) throw error;
    // Another token may be accepted: the next connection asks the token function again.
    state.refused = state.token;
    return 0;
  } finally {
    broken(state, clock);
  }
}

function broken(state: State, clock: Clock): void {
  if (!state.live) return;
  if (clock.now() - state.live.since >= STABLE_MS) state.attempt = 0;
  state.lastLive = state.live.heardAt;
  state.live = null;
}

/** Takes a token from the source. Throws SiteError `unauthenticated` when the source gives the refused token again. */
async function freshToken({ token }: SiteClientOptions, state: State): Promise<string> {
  state.token = await takeToken(token);
  if (state.token === state.refused) throw new SiteError('unauthenticated', 'The relay refused the token.');
  return state.token;
}

function waitMs(state: State, afterMs: number, random: () => number): number {
  const jitter = backoffMs(state.attempt++, { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS, random });
  return Math.min(LONGEST_AFTER_MS, Math.max(0, afterMs)) + jitter;
}

function endOf({ data }: SseFrame): Error {
  const members = parseObject(data);
  const code = textOf(members?.['code']) ?? 'session_inactive';
  const message =
    textOf(members?.['detail']) ?? textOf(members?.['message']) ?? MESSAGES[code] ?? 'The relay ended the stream.';
  return TEMPORARY_CODES.has(code) ? new Interrupted(message, 0) : new SiteError(code, message);
}

/** Reads an event; null if the frame is not an event of a relay. */
function eventOf({ data }: SseFrame): SiteEvent | null {
  const members = parseObject(data);
  const name = textOf(members?.['name']);
  const messageId = textOf(members?.['message_id']);
  if (!members || name === null || messageId === null) return null;
  const missed = Number(members['missed']);
  return {
    type: 'event',
    name,
    data: members['data'] ?? null,
    messageId,
    publishedAt: timeOf(members['published_at']),
    missed: Number.isSafeInteger(missed) && missed > 0 ? missed : 0,
  };
}

/** Returns a time in epoch milliseconds. The given time is an RFC 3339 text, or epoch milliseconds already. */
function timeOf(value: unknown): number {
  return typeof value === 'number' ? value : Date.parse(String(value));
}

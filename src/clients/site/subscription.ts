import { parseObject, textOf } from '../link/ask.ts';
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs } from '../link/backoff.ts';
import { sleep, systemClock, type Clock } from '../link/clock.ts';
import { takeToken } from '../link/token.ts';
import { Interrupted, openConnection } from './connection.ts';
import { SiteError } from './errors.ts';
import type { SseFrame } from './sse.ts';
import type { SiteClientOptions, SiteEvent, SiteGap, SubscribeOptions } from './types.ts';

/** A stream that was live for so long starts its waits anew. */
const STABLE_MS = 10_000;
/** However long a relay tells to stay away. */
const LONGEST_AFTER_MS = 300_000;
/** Why a relay ends a stream that may be opened again. */
const PASSING: ReadonlySet<string> = new Set([
  'draining',
  'store_unavailable',
  'node_lost',
  'rate_limited',
  'internal',
]);

const WORDS: Readonly<Record<string, string | undefined>> = {
  session_inactive: 'The session is over.',
  unauthenticated: 'The grant is over.',
};

type State = {
  /** The last sign of life of the last connection that was live; null: none was. */
  lastLive: number | null;
  /** When the present connection became live, and its last sign of life; null while it is not. */
  live: { readonly since: number; heardAt: number } | null;
  attempt: number;
  /** A token that the relay turned down: it is not tried again. */
  refused: string | null;
  token: string;
};

type Following = {
  /** Whether there may be another token. */
  readonly renewable: boolean;
  readonly state: State;
  readonly clock: Clock;
  readonly onStatus: SubscribeOptions['onStatus'] | undefined;
};

/** Live events until the session is over for us, with a gap for each time that the stream was away. */
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
    // Whoever aborts it knows so.
    if (!signal.aborted) throw error;
  }
}

/** Answers after how long to come back, at the least. Throws SiteError where coming back is of no use. */
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
    // Another token may do: the next connection finds out.
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

/** Throws SiteError `unauthenticated` where there is none but the one that was turned down. */
async function freshToken({ token }: SiteClientOptions, state: State): Promise<string> {
  state.token = await takeToken(token);
  if (state.token === state.refused) throw new SiteError('unauthenticated', 'The token is over.');
  return state.token;
}

function waitMs(state: State, afterMs: number, random: () => number): number {
  const jitter = backoffMs(state.attempt++, { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS, random });
  return Math.min(LONGEST_AFTER_MS, Math.max(0, afterMs)) + jitter;
}

function endOf({ data }: SseFrame): Error {
  const said = parseObject(data);
  const code = textOf(said?.['code']) ?? 'session_inactive';
  const words = textOf(said?.['detail']) ?? textOf(said?.['message']) ?? WORDS[code] ?? 'The relay ended the stream.';
  return PASSING.has(code) ? new Interrupted(words, 0) : new SiteError(code, words);
}

/** Null: not one that a relay sends. */
function eventOf({ data }: SseFrame): SiteEvent | null {
  const said = parseObject(data);
  const name = textOf(said?.['name']);
  const messageId = textOf(said?.['message_id']);
  if (!said || name === null || messageId === null) return null;
  const missed = Number(said['missed']);
  return {
    type: 'event',
    name,
    data: said['data'] ?? null,
    messageId,
    publishedAt: timeOf(said['published_at']),
    missed: Number.isSafeInteger(missed) && missed > 0 ? missed : 0,
  };
}

/** Of RFC 3339 or epoch milliseconds. */
function timeOf(value: unknown): number {
  return typeof value === 'number' ? value : Date.parse(String(value));
}

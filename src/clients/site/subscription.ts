import { parseObject, textOf } from '../link/ask.ts';
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs } from '../link/backoff.ts';
import { sleep, systemClock, type Clock } from '../link/clock.ts';
import { Interrupted, openConnection } from './connection.ts';
import { SiteError } from './errors.ts';
import type { SseFrame } from './sse.ts';
import type { SiteClientOptions, SiteEvent, SiteGap, SubscribeOptions } from './types.ts';

/** A stream that was live for so long starts its waits anew. */
const STABLE_MS = 10_000;
/** However long a relay tells to stay away. */
const LONGEST_AFTER_MS = 300_000;
/** Why a relay ends a stream that may be opened again. */
const PASSING: ReadonlySet<string> = new Set(['draining', 'store_unavailable', 'node_lost', 'rate_limited', 'internal']);

type State = {
  /** Whether the next connection takes up from an earlier one. */
  wasLive: boolean;
  /** When the present connection became live; null while it is not. */
  liveSince: number | null;
  heardAt: number;
  attempt: number;
};

/** Live events until the session is over for us, with a gap for each time that the stream was away. */
export async function* subscribe(
  options: SiteClientOptions,
  { names, signal = new AbortController().signal, onStatus }: SubscribeOptions,
): AsyncGenerator<SiteEvent | SiteGap, void> {
  const clock = options.clock ?? systemClock;
  const state: State = { wasLive: false, liveSince: null, heardAt: clock.now(), attempt: 0 };
  try {
    for (;;) {
      onStatus?.('connecting');
      const connection = openConnection({ ...options, clock, names, signal, heard: () => heard(state, clock) });
      const afterMs = yield* untilBroken(connection, { state, clock, onStatus });
      if (afterMs === null) return;
      onStatus?.('waiting');
      await sleep(clock, waitMs(state, { clock, afterMs, random: options.random ?? Math.random }), signal);
    }
  } catch (error) {
    // Whoever aborts it knows so.
    if (!signal.aborted) throw error;
  }
}

type Following = Pick<SubscribeOptions, 'onStatus'> & { readonly state: State; readonly clock: Clock };

/** After how long to come back, at the least; null: not at all. */
async function* untilBroken(
  connection: AsyncGenerator<SseFrame, void>,
  { state, clock, onStatus }: Following,
): AsyncGenerator<SiteEvent | SiteGap, number | null> {
  try {
    for await (const frame of connection) {
      if (frame.event === 'callboard.ready') {
        const since = state.heardAt;
        state.liveSince = clock.now();
        onStatus?.('live');
        if (state.wasLive) yield { type: 'gap', since };
        state.wasLive = true;
      } else if (frame.event === 'callboard.closed') ended(frame);
      else if (!frame.event.startsWith('callboard.')) {
        const event = eventOf(frame);
        if (event) yield event;
      }
    }
    return null;
  } catch (error) {
    if (error instanceof Interrupted) return error.afterMs;
    throw error;
  }
}

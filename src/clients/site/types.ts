/** Defines the public interface of `callboard/site`. Contains types only. */
import type { Outcome } from '../caller/types.ts';
import type { Clock } from '../link/clock.ts';
import type { TokenSource } from '../link/token.ts';

export type SiteClientOptions = {
  /** The relay's base address, such as `https://relay.example`. */
  readonly url: string;
  readonly sessionId: string;
  /** The grant's token. A function is called before each request. */
  readonly token: TokenSource;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** Source of jitter, 0 (included) to 1 (excluded). Default `Math.random`. */
  readonly random?: () => number;
};

/** A notification, not state: after an event, refresh the state that it concerns. */
export type SiteEvent = {
  readonly type: 'event';
  readonly name: string;
  /** Any JSON. Nothing checks what a site publishes. */
  readonly data: unknown;
  /** The id of the message that the relay retained in history. */
  readonly messageId: string;
  /** Epoch milliseconds, by the relay's clock. */
  readonly publishedAt: number;
  /** The number of events before this one that were dropped because they were not read fast enough. */
  readonly missed: number;
};

/**
 * The stream broke and is live again. Events published in between are lost, because the relay replays nothing: refresh
 * all state. A gap is yielded when the new stream is already live, so no later change is missed.
 */
export type SiteGap = {
  readonly type: 'gap';
  /** When the stream was last known to be live: epoch milliseconds of the local clock. */
  readonly since: number;
};

export type StreamStatus = 'connecting' | 'live' | 'waiting';

export type SubscribeOptions = {
  /** The names of the events to receive. Absent: all events that the session may read. */
  readonly names?: readonly string[];
  /** Aborting ends the subscription without an error. */
  readonly signal?: AbortSignal;
  /** `live`: events published from now on are received. The subscription throws what this callback throws. */
  readonly onStatus?: (status: StreamStatus) => void;
};

export type SiteInvokeOptions = {
  /** How long the action may take, in milliseconds: 1000 to 300000, default 30000. */
  readonly timeoutMs?: number;
  /** Aborting ends the wait, never the action. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Generated when absent. The same id with the same action and params never runs twice. */
  readonly commandId?: string;
};

/** The result of an action, discriminated by `outcome` as in callboard/caller. */
export type SiteInvocation<T = unknown> = Outcome<T> & {
  readonly commandId: string;
  readonly rpcId: string | null;
  readonly stage: string;
  /** What is proven about execution: `not_written`, `refused_by_client`, `may_have_run` or `reported_by_client`. */
  readonly execution: string;
};

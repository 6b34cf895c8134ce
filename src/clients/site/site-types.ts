/** Defines the public interface of `callboard/site`. Contains types only. */
import type { Outcome } from '../caller/caller-types.ts';
import type { Clock } from '../link/platform.ts';
import type { TokenSource } from '../link/socket.ts';

export type SiteClientOptions = {
  /** The relay's base address, such as `https://relay.example`. */
  readonly url: string;
  readonly sessionId: string;
  /** The grant's token, or a function that returns it. The function is called before each request. */
  readonly token: TokenSource;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

/** A notification, not state: after an event, refresh the state that it concerns. */
export type SiteEvent = {
  readonly type: 'event';
  readonly name: string;
  /** The data of the event: any JSON. Nothing checks what a site publishes. */
  readonly data: unknown;
  /** The id of the message that the relay retained in history. */
  readonly messageId: string;
  /** The time of publication in epoch milliseconds, by the relay's clock. */
  readonly publishedAt: number;
  /**
   * At least the number of events that were lost since the previous one: those that were not read fast enough, and one for
   * each interruption between relays.
   */
  readonly missed: number;
};

/**
 * The stream broke and is live again. Events published in between are lost, because the relay replays nothing: refresh
 * all state. A gap is yielded when the new stream is already live, so no later change is missed.
 */
export type SiteGap = {
  readonly type: 'gap';
  /** The time at which the stream was last known to be live, in epoch milliseconds of the local clock. */
  readonly since: number;
};

export type StreamStatus = 'connecting' | 'live' | 'waiting';

export type SubscribeOptions = {
  /** The names of the events to receive. Absent: all events that the session may read. */
  readonly names?: readonly string[];
  /** A signal that ends the subscription without an error. */
  readonly signal?: AbortSignal;
  /**
   * Receives the status of the stream. `live`: events published from now on are received. The subscription throws what
   * this callback throws.
   */
  readonly onStatus?: (status: StreamStatus) => void;
};

export type SiteInvokeOptions = {
  /** How long the action may take, in milliseconds: 1000 to 300000, default 30000. */
  readonly timeoutMs?: number;
  /** A signal that ends the wait, never the action. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The id of the command; generated when absent. The same id with the same action and params never runs twice. */
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

// The error that ends a subscription or rejects an invocation. `code` is one of callboard's codes (`session_inactive`,
// `unauthenticated`, `not_found`, `site_action_denied`, ...), or one of two others:  - `unreachable`: no response from
// the relay. An action may have run: invoke it again with the same command id. - `bad_answer`: the response does not
// come from a relay.  `message` is meant for people, not for programs.

export class SiteError extends Error {
  readonly code: string;
  /** The invocation that the error concerns; null for a subscription. */
  readonly commandId: string | null;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: SiteErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'SiteError';
    this.code = code;
    this.commandId = details.commandId ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

export type SiteErrorDetails = {
  readonly commandId?: string;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};

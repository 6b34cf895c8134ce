import type { Outcome } from '../caller/types.ts';
import type { Clock } from '../link/clock.ts';
import type { TokenSource } from '../link/token.ts';

export type SiteClientOptions = {
  /** The relay's base address, such as `https://relay.example`. */
  readonly url: string;
  readonly sessionId: string;
  /** The grant's token; a function is asked before each request. */
  readonly token: TokenSource;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** 0 (included) to 1 (excluded). */
  readonly random?: () => number;
};

/** A notification, not state: after it, refresh what it is about. */
export type SiteEvent = {
  readonly type: 'event';
  readonly name: string;
  /** The caller's own claim: nothing checks what a site publishes. */
  readonly data: unknown;
  /** Of the message that the relay retained: whoever may read history finds it there. */
  readonly messageId: string;
  /** Epoch milliseconds, by the relay's clock. */
  readonly publishedAt: number;
  /** How many events before this one were dropped because they were not read fast enough. */
  readonly missed: number;
};

/**
 * The stream broke and is there again. What was published in between is lost to it, since nothing is replayed: refresh everything. It comes
 * when the new stream is live already, so what changes from now on is told.
 */
export type SiteGap = {
  readonly type: 'gap';
  /** When the stream was last known to be live: epoch milliseconds of the local clock. */
  readonly since: number;
};

export type StreamStatus = 'connecting' | 'live' | 'waiting';

export type SubscribeOptions = {
  /** Only these events. Left out: all that the session may see. */
  readonly names?: readonly string[];
  /** Ends the subscription, without an error. */
  readonly signal?: AbortSignal;
  /** `live`: what is published from now on is told. What it throws is thrown by the subscription. */
  readonly onStatus?: (status: StreamStatus) => void;
};

export type SiteInvokeOptions = {
  /** How long the action may take: 1000 to 300000, default 30000. */
  readonly timeoutMs?: number;
  /** Ends the wait, never the action: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Made anew unless given. The same id with the same action and params never runs twice. */
  readonly commandId?: string;
};

/** What became of an action, told apart by `outcome`, as in callboard/caller. */
export type SiteInvocation<T = unknown> = Outcome<T> & {
  readonly commandId: string;
  readonly rpcId: string | null;
  readonly stage: string;
  /** What is proven: `not_written`, `refused_by_client`, `may_have_run` or `reported_by_client`. */
  readonly execution: string;
};

/** Defines the public interface of `callboard/caller`. Contains types only. */
import type { WireWaitStage } from '../../protocol/fields.ts';

export type Target = {
  readonly userId: string;
  readonly clientId: string;
  readonly action: string;
  /** Invoke only if this instance of the client is live. */
  readonly instanceId?: string;
};

/**
 * Identifies one command. Any process can await and cancel the command by its handle until the idempotency window (one
 * hour by default) is over.
 */
export type Handle = { readonly userId: string; readonly clientId: string; readonly commandId: string };

export type InvokeOptions = {
  /** The id of the command; generated when absent. The same id with the same action and params never runs twice. */
  readonly commandId?: string;
  /** The stage to wait for. Default `completed`. */
  readonly waitFor?: WireWaitStage;
  /** How long to wait for the client to connect, in milliseconds: 0 to 300000, default 0. */
  readonly connectWithinMs?: number;
  /**
   * How long the client has to respond, in milliseconds: 1000 to 300000, default 30000. The command's deadline is after
   * `connectWithinMs` plus this time.
   */
  readonly respondWithinMs?: number;
  /** The trace that the call belongs to. A call with a given trace records no span of its own, even with `tracing`. */
  readonly traceId?: string;
  readonly parentSpanId?: string;
  /** Receives `admitted`, `queued`, `dispatched` and `acknowledged` in order; some may be skipped. Only over a link. */
  readonly onStage?: (stage: string) => void;
  /** A signal that ends the wait, never the command. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
};

export type AwaitOptions = Pick<InvokeOptions, 'waitFor' | 'onStage' | 'signal'> & {
  /** How long to wait, in milliseconds: 0 to 600000, default 30000. 0 returns the recorded state at once. */
  readonly withinMs?: number;
};

export type Failure = { readonly code: string; readonly message: string };

export type Evidence = {
  readonly handle: Handle;
  readonly rpcId: string | null;
  readonly stage: string;
  /** What is proven about execution: `not_written`, `refused_by_client`, `may_have_run` or `reported_by_client`. */
  readonly execution: string;
};

/**
 * The result of a wait for a command, discriminated by `outcome`. `T` is the caller's assumption about the result;
 * nothing checks it.
 *
 * - `completed`: the handler returned `result`. With `code` `result_expired`, the relay no longer retains the result,
 *   and `result` is null.
 * - `failed`: the handler failed, or the client refused the command (then `execution` is `refused_by_client`).
 * - `cancelled`: with `execution` `not_written`, nothing ran. Otherwise the handler stopped, and `partial` is its
 *   partial result, if it gave one.
 * - `expired`: the command was never written to a client.
 * - `outcome_unknown`: the command may have run, and nothing more is known.
 * - `pending`: the command has not ended. The wait reached its stage or its time limit, or, over HTTP, the relay that
 *   held the wait shut down. Await the handle to continue waiting.
 */
export type Invocation<T = unknown> = Evidence & Outcome<T>;

export type Outcome<T = unknown> =
  | { readonly outcome: 'completed'; readonly result: T; readonly code?: 'result_expired' }
  | { readonly outcome: 'failed'; readonly error: Failure }
  | { readonly outcome: 'cancelled'; readonly partial: unknown; readonly code?: 'result_expired' }
  | { readonly outcome: 'expired'; readonly error: Failure }
  | { readonly outcome: 'outcome_unknown'; readonly error: Failure }
  | { readonly outcome: 'pending' };

/**
 * The result of a cancel. `cancelled`: the command was not written to its client and never will be. `requested`: the
 * client was asked to stop it. `too_late`: the command had already ended.
 */
export type Receipt = { readonly handle: Handle; readonly state: 'cancelled' | 'requested' | 'too_late' };

/**
 * Invokes actions on clients. Every end of an admitted command is returned as an Invocation, never thrown. Methods
 * reject with a CallerError (the relay refused the request or could not be reached), or with the reason of the aborted
 * signal.
 */
export interface Caller extends AsyncDisposable {
  /**
   * Invokes an action and waits. `params` is an object or `rawJson(text)` of one; default `{}`. When a connection
   * breaks, the request is sent again under the same command id.
   */
  invoke<T = unknown>(target: Target, params?: object, options?: InvokeOptions): Promise<Invocation<T>>;
  await<T = unknown>(handle: Handle, options?: AwaitOptions): Promise<Invocation<T>>;
  cancel(handle: Handle, reason?: string): Promise<Receipt>;
  /** Ends every wait with CallerError `closed`. The commands continue. */
  close(): Promise<void>;
}

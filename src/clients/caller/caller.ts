/** The public interface of `callboard/caller`. */
import type { Code, WireCancelState, WireExecution, WireStage } from '../../protocol/codes.ts';
import type { WireWaitStage } from '../../protocol/fields.ts';
import type { ActionSpecs, ParamsIn, ResultOf } from '../link/actions.ts';
import { LibraryError, type LibraryErrorDetails } from '../link/library-error.ts';
import type { ProgressUpdate } from '../link/progress.ts';
import type { RawJson } from '../link/raw-json.ts';

export type Target = {
  /** The user whose client is called. */
  readonly userId: string;
  readonly clientId: string;
  /** The name of an action that the client advertises. */
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
  /**
   * The context of the client, such as a tab, in which the command may run, and in no other. Refused with
   * `context_gone` if the client does not report it, or with `context_unsupported` if it knows no places. Default: the
   * client chooses.
   */
  readonly contextId?: string;
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
  /** The span in that trace that the call belongs to. */
  readonly parentSpanId?: string;
  /**
   * Receives `admitted`, `queued`, `dispatched` and `acknowledged` in order; some may be skipped. Only over a link.
   * `onError` of the caller receives what this callback throws.
   */
  readonly onStage?: (stage: WireStage) => void;
  /**
   * Receives the progress that the handler reports, in order, as it arrives. Over HTTP the answer is then an event
   * stream. `onError` of the caller receives what this callback throws. Reports that are lost after the last one that
   * arrived are in no `missed`.
   */
  readonly onProgress?: (progress: ProgressUpdate) => void;
  /** A signal that ends the wait, never the command. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
};

export type AwaitOptions = Pick<InvokeOptions, 'waitFor' | 'onStage' | 'onProgress' | 'signal'> & {
  /** How long to wait, in milliseconds: 0 to 600000, default 30000. 0 returns the recorded state at once. */
  readonly withinMs?: number;
};

/** Why a command did not complete. A newer relay may send a code that this version does not name. */
export type Failure = { readonly code: Code; readonly message: string };

export type Evidence = {
  readonly handle: Handle;
  readonly rpcId: string | null;
  readonly stage: WireStage;
  /**
   * The last stage that the command is proven to have reached before it ended: how far it certainly came. Null if the
   * relay does not say so: an older one, or one that keeps no more of the command than how it ended.
   */
  readonly lastProvenStage: WireStage | null;
  /** What is proven about execution in the client. */
  readonly execution: WireExecution;
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
export type Receipt = { readonly handle: Handle; readonly state: WireCancelState };

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

/**
 * A caller of known actions: the type of what `defineActions` returned gives the types of params and results.
 * `createHttpCaller<typeof actions>(options)` creates one, and so does `createLinkCaller`. Only the client checks them.
 */
export interface ActionCaller<A extends ActionSpecs> extends Omit<Caller, 'invoke'> {
  invoke<N extends keyof A & string>(
    target: Omit<Target, 'action'> & { readonly action: N },
    ...rest: {} extends ParamsIn<A[N]>
      ? [params?: ParamsIn<A[N]> | RawJson, options?: InvokeOptions]
      : [params: ParamsIn<A[N]> | RawJson, options?: InvokeOptions]
  ): Promise<Invocation<ResultOf<A[N]>>>;
}

export type CallerErrorDetails = LibraryErrorDetails & {
  readonly handle?: Handle | null;
  readonly by?: string | null | undefined;
  readonly share?: string | null | undefined;
};

/**
 * The error with which a Caller's methods reject when they give no Invocation or Receipt. `code` is one of callboard's
 * codes (`not_connected`, `policy_denied`, ...) when the relay refused the request. A refused invocation leaves no
 * record. Otherwise `code` is one of the caller's own codes:
 *
 * - `unreachable`: the relay could not be reached, or its answer did not arrive within the budget. If `mayHaveRun`
 *   is true, the request may have arrived: await `handle`, or invoke it again under its id.
 * - `bad_answer`: the response does not come from a relay.
 * - `overloaded`: too many waits are queued in this caller already; nothing was sent.
 * - `closed`: the caller was closed.
 *
 * If the relay closed the link permanently, `code` is the name of the close code.
 */
export class CallerError extends LibraryError {
  /** The command that the error concerns; null when it concerns none. */
  readonly handle: Handle | null;
  /** The check that refused the invocation, if the relay names it: `policy`, `target`, `capacity`, ... */
  readonly by: string | null;
  /** The name of the share that is used up, for `share_exceeded` and `store_full`: `links`, `queued_bytes`, ... */
  readonly share: string | null;

  constructor(code: string, message: string, details: CallerErrorDetails = {}) {
    super('CallerError', code, message, details);
    this.handle = details.handle ?? null;
    this.by = details.by ?? null;
    this.share = details.share ?? null;
  }
}

/** Defines the public types of `callboard/caller`. */
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
  /** If this is set, the action is invoked only if this instance of the client is connected. */
  readonly instanceId?: string;
};

/**
 * Identifies one command. With its handle, any process can await and cancel the command until the idempotency window
 * (one hour by default) is over.
 */
export type Handle = { readonly userId: string; readonly clientId: string; readonly commandId: string };

export type InvokeOptions = {
  /**
   * The id of the command; if absent, the caller makes one. A second invocation with the same id, action and params
   * does not run the action again.
   */
  readonly commandId?: string;
  /**
   * The context of the client, such as a tab, in which alone the command may run. Refused with `context_gone` if the
   * client does not report this context, and with `context_unsupported` if the client does not support such commands.
   * Default: the client chooses.
   */
  readonly contextId?: string;
  /** The stage to wait for. Default `completed`. */
  readonly waitFor?: WireWaitStage;
  /** How long to wait for the client to connect, in milliseconds: 0 to 300000, default 0. */
  readonly connectWithinMs?: number;
  /**
   * How long the client has to respond, in milliseconds: 1000 to 300000, default 30000. The command's deadline is
   * `connectWithinMs` plus this time after the admission.
   */
  readonly respondWithinMs?: number;
  /** The trace of the call. If this is set, the call records no span of its own, even with the option `tracing`. */
  readonly traceId?: string;
  /** The span of this trace to which the call belongs. */
  readonly parentSpanId?: string;
  /**
   * Receives the stages `admitted`, `queued`, `dispatched` and `acknowledged` in this order. It may miss some. Only a
   * caller over a link calls it. If it throws, the caller's `onError` receives the error.
   */
  readonly onStage?: (stage: WireStage) => void;
  /**
   * Receives the progress that the handler reports, in order, as it arrives. Over HTTP, the answer is then an event
   * stream. If it throws, the caller's `onError` receives the error. Reports that are lost after the last one that
   * arrived are not counted in any `missed`.
   */
  readonly onProgress?: (progress: ProgressUpdate) => void;
  /** A signal that ends the wait, but not the command. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
};

export type AwaitOptions = Pick<InvokeOptions, 'waitFor' | 'onStage' | 'onProgress' | 'signal'> & {
  /** How long to wait, in milliseconds: 0 to 600000, default 30000. If 0, the recorded state is returned at once. */
  readonly withinMs?: number;
};

/** Why a command did not complete. A newer relay may send a code that is not among the types of this version. */
export type Failure = { readonly code: Code; readonly message: string };

export type Evidence = {
  readonly handle: Handle;
  readonly rpcId: string | null;
  readonly stage: WireStage;
  /**
   * The last stage that the command certainly reached before it ended. Null if the relay does not report it: an older
   * relay, or one that retains only how the command ended.
   */
  readonly lastProvenStage: WireStage | null;
  /** What is proven about the execution in the client. */
  readonly execution: WireExecution;
};

/**
 * The result of a wait for a command, discriminated by `outcome`. `T` is the type that the caller expects of the
 * result; it is not checked.
 *
 * - `completed`: the handler returned `result`. With `code` `result_expired`, the relay no longer retains the result,
 * and `result` is null.
 * - `failed`: the handler failed, or the client refused the command (then `execution` is `refused_by_client`).
 * - `cancelled`: with `execution` `not_written`, nothing ran. Otherwise the handler stopped, and `partial` is its
 * partial result, if it gave one.
 * - `expired`: the command was never written to a client.
 * - `outcome_unknown`: the command may have run; nobody knows how it ended.
 * - `pending`: the command has not ended. The wait reached its stage or its time limit, or, over HTTP, the relay that
 * held the wait shut down. Await the handle to continue waiting.
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
 * client was asked to stop it. `too_late`: it had already ended.
 */
export type Receipt = { readonly handle: Handle; readonly state: WireCancelState };

/**
 * Invokes actions on clients. If a command was admitted, its end is always returned as an Invocation, never thrown.
 * Methods reject with a CallerError if the relay refuses the request or cannot be reached, and with the signal's reason
 * if the signal is aborted.
 */
export interface Caller extends AsyncDisposable {
  /**
   * Invokes an action and waits. `params`: an object, or `rawJson(text)` of one; default `{}`. If the connection
   * breaks, the request is sent again with the same command id.
   */
  invoke<T = unknown>(target: Target, params?: object, options?: InvokeOptions): Promise<Invocation<T>>;
  await<T = unknown>(handle: Handle, options?: AwaitOptions): Promise<Invocation<T>>;
  cancel(handle: Handle, reason?: string): Promise<Receipt>;
  /** Closes the caller. Every wait rejects with CallerError `closed`. The commands continue. */
  close(): Promise<void>;
}

/**
 * A caller whose params and results have the types of a contract. `A` is the type of what `defineActions` returned:
 * `createHttpCaller<typeof actions>(options)`, or the same with `createLinkCaller`. The caller does not check values
 * against these types; only the client does.
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
 * The error with which a Caller's methods reject. If the relay refused the request, `code` is one of callboard's codes
 * (`not_connected`, `policy_denied`, ...); a refused invocation leaves no record. Otherwise `code` is one of the
 * caller's own codes:
 *
 * - `unreachable`: the relay could not be reached, or its answer did not arrive within the budget. If `mayHaveRun`
 * is true, the request may have arrived: await `handle`, or invoke the action again with the same command id.
 * - `bad_answer`: the response does not come from a relay.
 * - `overloaded`: too many waits are already queued in this caller; nothing was sent.
 * - `closed`: the caller was closed.
 *
 * If the relay closed the link permanently, `code` is the name of the close code.
 */
export class CallerError extends LibraryError {
  /** The command that the error is about; null if it is about none. */
  readonly handle: Handle | null;
  /** The check that refused the invocation (`policy`, `target`, `capacity`, ...), if the relay names it. */
  readonly by: string | null;
  /** The share without room (`links`, `queued_bytes`, ...), for `share_exceeded` and `store_full`. */
  readonly share: string | null;

  constructor(code: string, message: string, details: CallerErrorDetails = {}) {
    super('CallerError', code, message, details);
    this.handle = details.handle ?? null;
    this.by = details.by ?? null;
    this.share = details.share ?? null;
  }
}

import type { WireWaitStage } from '../../protocol/fields.ts';

export type Target = {
  readonly userId: string;
  readonly clientId: string;
  readonly action: string;
  /** Only if this very instance is live. */
  readonly instanceId?: string;
};

/** Names one command: it can be awaited and cancelled by it, from any process, until its idempotency window (an hour unless set) is over. */
export type Handle = { readonly userId: string; readonly clientId: string; readonly commandId: string };

export type InvokeOptions = {
  /** Made anew unless given. The same id with the same action and params never runs twice. */
  readonly commandId?: string;
  /** Default `completed`. */
  readonly waitFor?: WireWaitStage;
  /** How long to wait for the client to connect: 0 to 300000, default 0. */
  readonly connectWithinMs?: number;
  /** How long the command may take from then on: 1000 to 300000, default 30000. */
  readonly respondWithinMs?: number;
  readonly traceId?: string;
  readonly parentSpanId?: string;
  /** `admitted`, `queued`, `dispatched`, `acknowledged`, as they come; some may be skipped. Over a link only. */
  readonly onStage?: (stage: string) => void;
  /** Ends the wait, never the command: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
};

export type AwaitOptions = Pick<InvokeOptions, 'waitFor' | 'onStage' | 'signal'> & {
  /** How long to wait: 0 to 600000, default 30000. 0 only reads what is recorded. */
  readonly withinMs?: number;
};

export type Failure = { readonly code: string; readonly message: string };

export type Evidence = {
  readonly handle: Handle;
  readonly rpcId: string | null;
  readonly stage: string;
  /** What is proven: `not_written`, `refused_by_client`, `may_have_run` or `reported_by_client`. */
  readonly execution: string;
};

/**
 * What became of a command, told apart by `outcome`. `T` is the caller's own claim about the result: nothing checks it.
 *
 * - `completed`: its handler returned `result`; with `code` `result_expired` the relay no longer retains it, and `result` is null.
 * - `failed`: its handler failed, or the client refused it (then `execution` is `refused_by_client`).
 * - `cancelled`: with `execution` `not_written`, nothing ran; else the handler stopped, with `partial` if it handed that over.
 * - `expired`: it was never written to a client.
 * - `outcome_unknown`: it may have run, and nothing more is known.
 * - `pending`: it lives; the wait reached its stage or its time, or, over HTTP, the relay that held it went away. Await the handle to wait on.
 */
export type Invocation<T = unknown> = Evidence & Outcome<T>;

export type Outcome<T = unknown> =
  | { readonly outcome: 'completed'; readonly result: T; readonly code?: 'result_expired' }
  | { readonly outcome: 'failed'; readonly error: Failure }
  | { readonly outcome: 'cancelled'; readonly partial: unknown; readonly code?: 'result_expired' }
  | { readonly outcome: 'expired'; readonly error: Failure }
  | { readonly outcome: 'outcome_unknown'; readonly error: Failure }
  | { readonly outcome: 'pending' };

/** `cancelled`: it was not written and never will be. `requested`: its client was asked. `too_late`: it had ended. */
export type Receipt = { readonly handle: Handle; readonly state: 'cancelled' | 'requested' | 'too_late' };

/**
 * Invokes actions on clients. Whatever an admitted command comes to is an Invocation, never an error; what is thrown is a CallerError (the
 * relay refused, or there was no relay to ask) or the reason of the signal that was aborted.
 */
export interface Caller extends AsyncDisposable {
  /** `params`: an object, or one as `rawJson(text)`; {} where left out. Sent again, under the same id, when a connection breaks. */
  invoke<T = unknown>(target: Target, params?: object, options?: InvokeOptions): Promise<Invocation<T>>;
  await<T = unknown>(handle: Handle, options?: AwaitOptions): Promise<Invocation<T>>;
  cancel(handle: Handle, reason?: string): Promise<Receipt>;
  /** Ends every wait with CallerError `closed`. The commands go on. */
  close(): Promise<void>;
}

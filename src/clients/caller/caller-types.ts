/** Defines the public interface of `callboard/caller`. Contains types only. */
import type { WireWaitStage } from '../../protocol/fields.ts';
import { CLIENT, type TraceApi } from '../../protocol/trace.ts';
import { SCOPE, endSpan, spanAttributes, textOf, type HttpAnswer, type WireTrace } from '../link/relay-request.ts';

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

// The error of the caller library, with the code and details of a refusal.

export type CallerErrorDetails = {
  readonly handle?: Handle | null;
  readonly by?: string | null;
  readonly retryAfterMs?: number | null;
  readonly share?: string | null;
  readonly cause?: unknown;
};

/**
 * The error with which a Caller's methods reject when they give no Invocation or Receipt. `code` is one of callboard's
 * codes (`not_connected`, `policy_denied`, ...) when the relay refused the request. A refused invocation leaves no
 * record. Otherwise `code` is one of the caller's own codes:
 *
 * - `unreachable`: the relay could not be reached, or its answer did not arrive. The command may have been admitted:
 *   await `handle`.
 * - `bad_answer`: the response does not come from a relay.
 * - `overloaded`: too many waits are queued in this caller already; nothing was sent.
 * - `closed`: the caller was closed.
 *
 * If the relay closed the link permanently, `code` is the name of the close code.
 */
export class CallerError extends Error {
  readonly code: string;
  /** The command that the error concerns; null when it concerns none. */
  readonly handle: Handle | null;
  /** The check that refused the invocation, if the relay names it: `policy`, `target`, `capacity`, ... */
  readonly by: string | null;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;
  /**
   * The name of the limit (the share) that is used up, for `share_exceeded` and `store_full`: `links`, `queued_bytes`,
   * ...
   */
  readonly share: string | null;

  constructor(code: string, message: string, details: CallerErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'CallerError';
    this.code = code;
    this.handle = details.handle ?? null;
    this.by = details.by ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.share = details.share ?? null;
  }
}

// Reads outcomes and refusals from answers of the relay, and checks their form.

/** An outcome as received, over HTTP or over a link. `outcome` is null while the command has not ended. */
type RawOutcome<T> = {
  readonly outcome: string | null;
  readonly result: T;
  readonly error: Failure | null;
};

/** Reads an outcome; null if it is unknown. */
function readOutcome<T>({ outcome, result, error }: RawOutcome<T>): Outcome<T> | null {
  const failure = error ?? { code: outcome ?? 'internal', message: 'The relay gave no reason.' };
  switch (outcome) {
    case null:
      return { outcome: 'pending' };
    case 'completed':
      return { outcome, result, ...expiredOf(error) };
    case 'cancelled':
      return { outcome, partial: result, ...expiredOf(error) };
    case 'failed':
    case 'expired':
    case 'outcome_unknown':
      return { outcome, error: failure };
    default:
      return null;
  }
}

function expiredOf(error: Failure | null): { readonly code?: 'result_expired' } {
  return error?.code === 'result_expired' ? { code: error.code } : {};
}

/** The outcome of an invocation over HTTP, with its evidence. */
type HttpOutcome<T> = {
  readonly rpcId: string | null;
  readonly stage: string;
  readonly execution: string;
  readonly outcome: Outcome<T>;
};

/**
 * Reads the outcome from a response of any status, such as 504. Returns `refused` for a response of status 300 or above
 * that has no `outcome`. Returns null if the response does not come from a relay.
 */
export function readHttpOutcome<T>({ status, body }: HttpAnswer): HttpOutcome<T> | 'refused' | null {
  const outcomeText = textOf(body['outcome']);
  if (status >= 300 && outcomeText === null) return 'refused';
  const stage = textOf(body['stage']);
  const execution = textOf(body['execution']);
  if (stage === null || execution === null) return null;
  // The type is the caller's assumption. Nothing checks it.
  const result = (body['result'] ?? null) as T;
  const outcome = readOutcome({ outcome: outcomeText, result, error: failureOf(body) });
  return outcome && { rpcId: textOf(body['rpc_id']), stage, execution, outcome };
}

type HttpRefusal = {
  readonly code: string;
  readonly message: string;
  readonly by: string | null;
  readonly share: string | null;
};

/** Reads a refusal; null if the response does not come from a relay. */
export function readHttpRefusal({ body }: HttpAnswer): HttpRefusal | null {
  const code = textOf(body['code']);
  if (code === null) return null;
  const message = textOf(body['detail']) ?? textOf(body['title']) ?? code;
  return { code, message, by: textOf(body['by']) ?? textOf(body['refused_by']), share: textOf(body['share']) };
}

function failureOf(body: HttpAnswer['body']): Failure | null {
  const error = body['error'];
  const inner = typeof error === 'object' && error !== null ? { ...error } : body;
  const code: unknown = 'code' in inner ? inner.code : undefined;
  const message: unknown = 'message' in inner ? inner.message : body['detail'];
  return typeof code === 'string' ? { code, message: textOf(message) ?? code } : null;
}

// Builds the public Invocation and Receipt from parsed answers. Both kinds of caller use it.

/** The content of an answer of the relay, received over HTTP or over a link. */
type ParsedAnswer<T> = Evidence & RawOutcome<T>;

/** Converts an answer to an Invocation. Throws CallerError `bad_answer` for an unknown outcome. */
export function toInvocation<T>({ outcome, result, error, ...evidence }: ParsedAnswer<T>): Invocation<T> {
  const end = readOutcome({ outcome, result, error });
  if (end) return { ...evidence, ...end };
  throw new CallerError('bad_answer', `Unknown outcome: ${outcome}.`, { handle: evidence.handle });
}

/** Creates a Receipt with the state of an answer. Throws CallerError `bad_answer` for an unknown state. */
export function toReceipt(handle: Handle, state: unknown): Receipt {
  if (state === 'cancelled' || state === 'requested' || state === 'too_late') return { handle, state };
  throw new CallerError('bad_answer', 'The relay gave no receipt.', { handle });
}

/** Returns the total time of an invocation, in milliseconds: its connect budget plus its response budget. */
export function budgetOf(options: { readonly connectWithinMs?: number; readonly respondWithinMs?: number }): number {
  return (options.connectWithinMs ?? 0) + (options.respondWithinMs ?? 30_000);
}

export const AWAIT_WITHIN_MS = 30_000;

// Records the spans of calls: one for each `invoke` and each `await`.

type TracedCall<T> = {
  readonly handle: Handle;
  /** The action to invoke. Null: the call awaits a command. */
  readonly action: string | null;
  /** Sends the request as part of this trace. */
  readonly run: (trace: WireTrace) => Promise<Invocation<T>>;
};

/** Runs a call within a span, as a child of the span that is active. Without `tracing` it only runs. */
export function traced<T>(tracing: TraceApi | undefined, call: TracedCall<T>): Promise<Invocation<T>> {
  return tracing ? runTraced(tracing, call) : call.run({});
}

async function runTraced<T>(tracing: TraceApi, { handle, action, run }: TracedCall<T>): Promise<Invocation<T>> {
  const attributes = { ...spanAttributes(handle.commandId), ...(action && { 'rpc.method': action }) };
  const span = tracing.getTracer(SCOPE).startSpan(action ?? 'callboard.await', { kind: CLIENT, attributes });
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const trace = {
    trace_id: traceId,
    parent_span_id: spanId,
    trace_flags: `0${traceFlags & 1}`,
    trace_state: traceState?.serialize(),
  };
  try {
    // Without an SDK, a span has ids of zeros only. Such ids are not sent.
    const answer = await run(/[^0]/.test(traceId) ? trace : {});
    endSpan(span, answer.outcome, 'error' in answer ? answer.error.code : undefined);
    return answer;
  } catch (error) {
    const code = error instanceof CallerError ? error.code : 'aborted';
    endSpan(span, code, code);
    throw error;
  }
}

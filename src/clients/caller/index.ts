/**
 * Exports `callboard/caller`, which invokes, awaits and cancels commands over HTTP or over a link, and implements the
 * caller over a link.
 */
import { AWAIT_WITHIN_MS, HEADER_CHARS, longerThan } from '../../protocol/bounds.ts';
import { STAGES } from '../../protocol/codes.ts';
import type { WireWaitStage } from '../../protocol/fields.ts';
import { parseForCaller } from '../../protocol/frame-codec.ts';
import type { TraceApi } from '../../protocol/trace.ts';
import type { ActionSpecs } from '../link/actions.ts';
import { OBJECT, checkMembers } from '../link/options.ts';
import { guarded } from '../link/callbacks.ts';
import type { LinkBounds, LinkStatus } from '../link/link-status.ts';
import { deferred, elapsed } from '../link/platform.ts';
import { LINK_MEMBERS, RelayLink, type LinkOptions } from '../link/link.ts';
import type { WireTrace } from '../link/spans.ts';
import { progressSink, type ProgressSink } from '../link/progress.ts';
import { MAY_HAVE_RUN } from '../link/library-error.ts';
import { AT_ONCE_MS, GRACE_MS } from '../link/request-with-retries.ts';
import { upFrame, type LinkFrame } from '../link/session.ts';
import { fieldsOf } from './http-caller.ts';
import { answerWithout, readOutcome, toReceipt, wordOf, type Ended } from './outcomes.ts';
import { TracingCaller, awaitBudget, budgetOf, type InvokeCall } from './tracing-caller.ts';
import {
  CallerError,
  type ActionCaller,
  type AwaitOptions,
  type Caller,
  type Handle,
  type Invocation,
  type InvokeOptions,
  type Receipt,
} from './caller.ts';

export { createHttpCaller, type HttpCallerOptions } from './http-caller.ts';
export { CallerError, type CallerErrorDetails } from './caller.ts';
export { defineActions } from '../link/actions.ts';
export type * from '../link/actions.ts';
export type {
  ActionCaller,
  AwaitOptions,
  Caller,
  Evidence,
  Failure,
  Handle,
  Invocation,
  InvokeOptions,
  Outcome,
  Receipt,
  Target,
} from './caller.ts';
export { rawJson, type RawJson } from '../link/raw-json.ts';
export { type Clock } from '../link/platform.ts';
export { type LinkStatus, type Welcome } from '../link/link-status.ts';
export type { SocketConstructor, SocketLike } from '../link/platform.ts';
export type { TokenSource } from '../link/reconnect.ts';
export type { ErrorCode } from '../link/library-error.ts';
export type { ProgressUpdate } from '../link/progress.ts';
export type { TraceApi } from '../link/spans.ts';

export type LinkCallerOptions = LinkOptions & {
  /** The `trace` object of `@opentelemetry/api`. If set, a span is recorded for each call. */
  readonly tracing?: TraceApi;
};

/** The most unanswered requests that the relay accepts on one link. Further requests are queued here, up to QUEUED. */
const UNANSWERED = 256;
/** The most requests that are queued here until the relay has answered earlier ones. A further request fails. */
const QUEUED = 10_000;
/**
 * How long the caller holds back an answer that ended a wait early, in milliseconds. A relay that shuts down ends all
 * waits early and then closes its links. If the link is still open after this time, the answer is final.
 */
const EARLY_MS = 1_000;

/**
 * Creates a caller over one link. The link opens with the first request and stays open. If it breaks, waits continue
 * over the next link: if the relay has confirmed the admission, the command is awaited; otherwise it is invoked again
 * with the same id. Throws TypeError for invalid options.
 */
export function createLinkCaller(options: LinkCallerOptions): Caller;
export function createLinkCaller<A extends ActionSpecs>(options: LinkCallerOptions): ActionCaller<A>;
export function createLinkCaller(options: LinkCallerOptions): Caller {
  const [required, optional] = LINK_MEMBERS;
  checkMembers('', options, [required, { ...optional, tracing: OBJECT }]);
  return new LinkCaller(options);
}

class LinkCaller extends TracingCaller {
  readonly #options: LinkCallerOptions;
  readonly #link: RelayLink;
  /** The requests that were sent, or that will be sent when the link is up, by their `ref`. */
  readonly #sent = new Map<string, PendingRequest>();
  readonly #queue = new Map<string, PendingRequest>();
  #refs = 0;

  constructor(options: LinkCallerOptions) {
    super(options);
    this.#options = options;
    this.#link = new RelayLink({
      ...options,
      who: 'caller',
      parse: parseForCaller,
      isHeard: ({ state }) => options.onStatus !== undefined || (state === 'closed' && this.#sent.size > 0),
      hello: (token) => upFrame({ type: 'hello', token }),
      onFrame: (frame) => this.#frame(frame),
      onStatus: (status) => this.#statusChanged(status),
    });
  }

  protected override get bounds(): LinkBounds {
    return this.#link.bounds;
  }

  protected async sendInvoke<T>(call: InvokeCall, trace: WireTrace): Promise<Invocation<T>> {
    const { handle, options, params } = call;
    const { maxFrameBytes } = this.bounds;
    const textOf = invokeText(call, trace);
    // The frame is measured only if the params alone are almost too large.
    if (longerThan(params, maxFrameBytes - HEADER_CHARS) && longerThan(textOf(LONGEST_REF), maxFrameBytes))
      throw new CallerError('payload_too_large', `params: larger than ${maxFrameBytes} bytes`, { handle });
    const wait = { ...options, budgetMs: budgetOf(options), last: 0 };
    const answer = await this.#request(handle, textOf, wait);
    return invocationOf(handle, answer);
  }

  protected async sendAwait<T>(handle: Handle, options: AwaitOptions, trace: WireTrace): Promise<Invocation<T>> {
    const wait = { ...options, budgetMs: awaitBudget(options) };
    const answer = await this.#request(handle, awaitText(handle, options, trace), wait);
    return invocationOf(handle, answer);
  }

  protected async sendCancel(handle: Handle, reason: string | undefined): Promise<Receipt> {
    const answer = await this.#request(handle, cancelText(handle, reason), { budgetMs: AT_ONCE_MS });
    return toReceipt(handle, answer.type === 'receipt' ? answer.state : null);
  }

  async close(): Promise<void> {
    this.#link.close('closed');
  }

  /**
   * Sends a request, and resolves with its answer. Rejects if the relay refuses the request, if the signal is aborted,
   * if the caller or its link is closed, or if QUEUED requests already wait. Rejects as well if no answer arrives
   * within `budgetMs`, or within GRACE_MS more if the request was written.
   */
  #request(handle: Handle, textOf: RequestText, wait: WaitOptions): Promise<AnswerFrame> {
    const { signal, onStage, onProgress, budgetMs, last, waitFor = 'completed', withinMs = budgetMs } = wait;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#link.status.state === 'closed') return Promise.reject(closedError(this.#link.status, handle));
    if (this.#queue.size >= QUEUED) {
      return Promise.reject(new CallerError('overloaded', 'Too many waits are queued.', { handle }));
    }
    const ref = `r${++this.#refs}`;
    const { promise, resolve, reject } = deferred<AnswerFrame>();
    const endsAt = elapsed(this.clock) + withinMs;
    const state = { written: false, isAgain: false, admitted: false, early: null, endsAt };
    const progress = progressSink(onProgress, last, this.#options.onError);
    const stopWatching = this.#watch(ref, wait);
    this.#queue.set(ref, { handle, textOf, ...state, waitFor, onStage, progress, stopWatching, resolve, reject });
    this.#link.connect();
    this.#pump();
    return promise;
  }

  #watch(ref: string, { signal, budgetMs }: WaitOptions): () => void {
    const leave = (): void => this.#leave(ref);
    let cancelTimer = this.clock.after(budgetMs, () => {
      // If there is no link, the request was never written or cannot be written again in time, so no grace time is
      // given.
      const isWaiting = this.#sent.get(ref)?.written && this.#link.status.state === 'connected';
      if (isWaiting) cancelTimer = this.clock.after(GRACE_MS, leave);
      else leave();
    });
    const aborted = (): void => this.#leave(ref, signal);
    signal?.addEventListener('abort', aborted, { once: true });
    return () => {
      cancelTimer();
      signal?.removeEventListener('abort', aborted);
    };
  }

  /** Ends a wait. `signal`: the signal that was aborted; absent if the time is over. */
  #leave(ref: string, signal?: AbortSignal): void {
    const request = this.#sent.get(ref) ?? this.#queue.get(ref);
    if (!request) return;
    if (this.#sent.has(ref)) this.#link.send({ type: 'leave', ref });
    this.#drop(ref, request);
    request.reject(signal ? signal.reason : this.#unanswered(request));
  }

  #unanswered({ handle, written: mayHaveRun }: PendingRequest): CallerError {
    const { status } = this.#link;
    const why = 'message' in status ? status.message : `No answer came from ${this.#link.url} in time.`;
    return unansweredError('unreachable', why, handle, mayHaveRun);
  }

  #drop(ref: string, request: PendingRequest): void {
    request.stopWatching();
    this.#queue.delete(ref);
    this.#sent.delete(ref);
    this.#pump();
  }

  #pump(): void {
    for (const [ref, request] of this.#queue) {
      if (this.#sent.size >= UNANSWERED) return;
      this.#queue.delete(ref);
      this.#sent.set(ref, request);
      request.written = this.#link.sendText(request.textOf(ref));
    }
  }

  #statusChanged(status: LinkStatus): void {
    if (status.state === 'connected') this.#resume();
    if (status.state === 'closed') this.#closed(status);
    guarded(() => this.#options.onStatus?.(status), this.#options.onError);
  }

  #resume(): void {
    for (const [ref, request] of this.#sent) {
      request.early = null;
      request.isAgain = request.written;
      const leftMs = request.endsAt - elapsed(this.clock);
      this.#link.sendText(request.textOf(ref, request.admitted ? leftMs : undefined));
      request.written = true;
    }
  }

  #closed(status: Closed): void {
    for (const [ref, request] of [...this.#sent, ...this.#queue]) {
      const { handle, written } = request;
      this.#drop(ref, request);
      request.reject(closedError(status, handle, written));
    }
  }

  #frame(frame: LinkFrame): void {
    if (!('ref' in frame) || frame.ref === undefined || frame.type === 'site_ack' || frame.type === 'pause_ack') return;
    const request = this.#sent.get(frame.ref);
    if (!request) return;
    if (frame.type === 'stage') {
      request.admitted = true;
      const stage = wordOf(STAGES, frame.stage);
      return guarded(() => stage && request.onStage?.(stage), this.#options.onError);
    }
    if (frame.type === 'progress') return request.progress?.(frame.payload, frame.number);
    if (frame.type === 'outcome' && isEarly(request, frame, elapsed(this.clock))) return this.#hold(request, frame);
    this.#drop(frame.ref, request);
    if (frame.type === 'refused') this.#refused(request, frame);
    else request.resolve(frame);
  }

  #hold(request: PendingRequest, frame: OutcomeFrame): void {
    request.admitted = true;
    request.early = frame;
    this.clock.after(EARLY_MS, () => {
      if (request.early !== frame || this.#link.status.state !== 'connected') return;
      this.#drop(frame.ref, request);
      request.resolve(frame);
    });
  }

  #refused(request: PendingRequest, frame: RefusedFrame): void {
    if (request.admitted && frame.code === 'not_found') request.resolve(FORGOTTEN);
    else request.reject(refusalOf(request, frame));
  }
}

type WaitOptions = AwaitOptions & {
  /** The time limit of the whole request, in milliseconds. */
  readonly budgetMs: number;
  /** The number of the last progress report that is not needed; undefined if it is not known. */
  readonly last?: number;
};

type Closed = Extract<LinkStatus, { state: 'closed' }>;

function closedError({ reason, message }: Closed, handle: Handle, mayHaveRun = false): CallerError {
  return unansweredError(reason, reason === 'closed' ? 'The caller was closed.' : message, handle, mayHaveRun);
}

function unansweredError(code: string, why: string, handle: Handle, mayHaveRun: boolean): CallerError {
  return new CallerError(code, mayHaveRun ? why + MAY_HAVE_RUN : why, { handle, mayHaveRun });
}

// Builds the frames of requests and reads the frames of answers. Sends nothing.

type OutcomeFrame = Extract<LinkFrame, { type: 'outcome' }>;
type RefusedFrame = Extract<LinkFrame, { type: 'refused' }>;
type AnswerFrame = Extract<LinkFrame, { type: 'outcome' | 'receipt' }>;

type PendingRequest = {
  readonly handle: Handle;
  readonly endsAt: number;
  readonly waitFor: WireWaitStage;
  readonly textOf: RequestText;
  /** Whether the request was written to a link. If so, the command may have run. */
  written: boolean;
  /**
   * Whether the request was written to an earlier link. If so, the command may still run, even if the next answer is a
   * refusal.
   */
  isAgain: boolean;
  /** Whether the relay confirmed that the command was admitted. */
  admitted: boolean;
  /**
   * The `outcome` frame with which the relay ended this wait before the stage of `waitFor` was reached and before
   * `endsAt`; null if there is none. The relay does this when it shuts down, and the wait then continues over the next
   * link. If the link stays up for EARLY_MS, this frame is the answer.
   */
  early: OutcomeFrame | null;
  readonly onStage: InvokeOptions['onStage'] | undefined;
  readonly progress: ProgressSink | undefined;
  /** Cancels the timer of the wait and removes its abort listener. Call it when the wait is over. */
  readonly stopWatching: () => void;
  readonly resolve: (frame: AnswerFrame) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * Returns the frame of a request. `leftMs`: set if the command is known to be admitted. The frame then awaits the
 * command for this time instead of invoking it.
 */
type RequestText = (ref: string, leftMs?: number) => string;

/** The longest possible ref, for measuring a frame. */
const LONGEST_REF = `r${Number.MAX_SAFE_INTEGER}`;

/** Whether the relay ended a wait that has not reached its stage or its time limit. */
function isEarly({ waitFor, endsAt }: PendingRequest, frame: AnswerFrame, now: number): frame is OutcomeFrame {
  if (frame.type !== 'outcome' || frame.outcome !== undefined || now >= endsAt) return false;
  return waitFor === 'completed' || (waitFor === 'acknowledged' && frame.stage !== 'acknowledged');
}

function invokeText({ handle, target, params, options }: InvokeCall, trace: WireTrace): RequestText {
  const { trace_id, parent_span_id, ...fields } = fieldsOf(target, options);
  const traced = { trace_id, parent_span_id, ...trace };
  const named = { ...idsOf(handle), action: target.action, ...fields, ...updatesOf(options), ...traced };
  return (ref, leftMs) =>
    leftMs === undefined
      ? upFrame({ type: 'invoke', ref, ...named }, params)
      : awaitText(handle, options, traced)(ref, leftMs);
}

function awaitText(handle: Handle, wait: AwaitOptions, trace: WireTrace): RequestText {
  const fields = { ...idsOf(handle), wait_for: wait.waitFor, ...updatesOf(wait), ...trace };
  return (ref, leftMs) =>
    upFrame({ type: 'await', ref, ...fields, within_ms: leftMs === undefined ? wait.withinMs : clamp(leftMs) });
}

function cancelText(handle: Handle, reason: string | undefined): RequestText {
  return (ref) => upFrame({ type: 'cancel', ref, ...idsOf(handle), reason });
}

function invocationOf<T>(handle: Handle, frame: AnswerFrame): Invocation<T> {
  const end = frame.type === 'outcome' && endOf<T>(handle, frame);
  if (end) return { handle, ...end };
  throw answerWithout(handle, 'known outcome');
}

/**
 * Returns the end of a command from an outcome frame; null if the frame has an unknown outcome. The result is not
 * checked.
 */
function endOf<T>(handle: Handle, frame: OutcomeFrame): Ended<T> | null {
  const { error_code: code, error_message: message, payload } = frame;
  const error = code === undefined ? null : { code, message: message ?? code };
  try {
    return readOutcome(frame, { result: JSON.parse(payload ?? 'null'), error });
  } catch (cause) {
    throw answerWithout(handle, 'result in JSON', cause);
  }
}

/**
 * The answer if the relay admitted the command before a link broke, and no longer knows the command. The relay has lost
 * data, so the command may have run.
 */
const FORGOTTEN: OutcomeFrame = {
  type: 'outcome',
  payload: null,
  ref: '',
  command_id: '',
  outcome: 'outcome_unknown',
  stage: 'terminal',
  execution: 'may_have_run',
  error_code: 'store_lost',
  error_message: 'The relay no longer knows the command.',
};

function refusalOf(
  { handle, isAgain: mayHaveRun }: PendingRequest,
  { code, message, by, retry_after_ms: retryAfterMs, share }: RefusedFrame,
): CallerError {
  const text = mayHaveRun ? message + MAY_HAVE_RUN : message;
  return new CallerError(code, text, { handle, by, retryAfterMs, share, mayHaveRun });
}

/**
 * Returns the header members that request stages and progress. The first stage is always requested, because it confirms
 * the admission, and this decides whether a new link gets an `await` or an `invoke`.
 */
function updatesOf({ onStage, onProgress }: Pick<AwaitOptions, 'onStage' | 'onProgress'>) {
  const stages = onStage === undefined ? ('first' as const) : ('all' as const);
  return { stages, progress: onProgress && true };
}

function idsOf({ userId, clientId, commandId }: Handle) {
  return { user_id: userId, client_id: clientId, command_id: commandId };
}

function clamp(ms: number): number {
  return Math.max(0, Math.min(AWAIT_WITHIN_MS.max, Math.floor(ms)));
}

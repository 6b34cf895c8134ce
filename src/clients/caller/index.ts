/**
 * Exports `callboard/caller`, which invokes, awaits and cancels commands, over HTTP or over one link, and implements
 * the caller over one link: a WebSocket that is shared by all requests and replaced when it breaks.
 */
import { STAGES } from '../../protocol/codes.ts';
import type { WireWaitStage } from '../../protocol/fields.ts';
import type { TraceApi } from '../../protocol/trace.ts';
import type { ActionSpecs } from '../link/actions.ts';
import { checkCallbacks, guarded, jsonOf, type LinkStatus } from '../link/platform.ts';
import { RelayLink, upFrame, type LinkFrame, type LinkOptions } from '../link/link.ts';
import { GRACE_MS, progressSink, type ProgressSink, type WireTrace } from '../link/relay-request.ts';
import {
  AWAIT_WITHIN_MS,
  CallerError,
  TracingCaller,
  budgetOf,
  readOutcome,
  toReceipt,
  wordOf,
  type ActionCaller,
  type AwaitOptions,
  type Caller,
  type Handle,
  type Invocation,
  type InvokeCall,
  type InvokeOptions,
  type Receipt,
} from './caller.ts';

export { createHttpCaller, CallerError, type CallerErrorDetails, type HttpCallerOptions } from './caller.ts';
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
export { rawJson, type Clock, type LinkStatus, type RawJson, type Welcome } from '../link/platform.ts';
export type { SocketConstructor, SocketLike, TokenSource } from '../link/platform.ts';
export type { ErrorCode, ProgressUpdate, TraceApi } from '../link/relay-request.ts';

export type LinkCallerOptions = LinkOptions & {
  /** The `trace` object of `@opentelemetry/api`, to record a span for each call. */
  readonly tracing?: TraceApi;
};

/** The relay's limit of unanswered requests on one link. Further requests are queued here, up to QUEUED. */
const UNANSWERED = 256;
/** The most requests that wait in this caller until the relay has answered earlier ones. A further request fails. */
const QUEUED = 10_000;
/**
 * How long the caller holds an answer that ended a wait early, in milliseconds. A relay that shuts down ends all waits
 * early and then closes the link. If the link is still open after this time, the answer is final.
 */
const EARLY_MS = 1_000;

/**
 * Creates a caller over one link, which opens with the first request and stays open. When the link breaks, waits
 * continue over the next link. A command that is known to be admitted is then awaited. Any other command is invoked
 * again under its id. Throws TypeError for invalid options.
 */
export function createLinkCaller(options: LinkCallerOptions): Caller;
export function createLinkCaller<A extends ActionSpecs>(options: LinkCallerOptions): ActionCaller<A>;
export function createLinkCaller(options: LinkCallerOptions): Caller {
  return new LinkCaller(options);
}

class LinkCaller extends TracingCaller {
  readonly #options: LinkCallerOptions;
  readonly #link: RelayLink;
  /** The requests that were sent, or that will be sent when the link is up. The key is their `ref`. */
  readonly #sent = new Map<string, PendingRequest>();
  readonly #queue = new Map<string, PendingRequest>();
  #refs = 0;

  constructor(options: LinkCallerOptions) {
    super(options);
    checkCallbacks(options, ['onStatus', 'onError']);
    this.#options = options;
    this.#link = new RelayLink({
      ...options,
      who: 'caller',
      isHeard: ({ state }) => options.onStatus !== undefined || (state === 'closed' && this.#sent.size > 0),
      hello: (token) => upFrame({ type: 'hello', token }),
      onFrame: (frame) => this.#frame(frame),
      onStatus: (status) => this.#statusChanged(status),
    });
  }

  protected async sendInvoke<T>(call: InvokeCall, trace: WireTrace): Promise<Invocation<T>> {
    const { handle, options } = call;
    const wait = { ...options, budgetMs: budgetOf(options), last: 0 };
    const answer = await this.#request(handle, invokeFrames(call, trace), wait);
    return invocationOf(handle, answer);
  }

  protected async sendAwait<T>(handle: Handle, options: AwaitOptions, trace: WireTrace): Promise<Invocation<T>> {
    const budgetMs = options.withinMs ?? AWAIT_WITHIN_MS;
    const answer = await this.#request(handle, awaitFrames(handle, options, trace), { ...options, budgetMs });
    return invocationOf(handle, answer);
  }

  async cancel(handle: Handle, reason?: string): Promise<Receipt> {
    const answer = await this.#request(handle, cancelFrames(handle, reason), { budgetMs: 0 });
    return toReceipt(handle, answer.type === 'receipt' ? answer.state : null);
  }

  async close(): Promise<void> {
    this.#link.close('closed');
  }

  /**
   * Sends a request and resolves with its answer. Rejects when the relay refuses the request, when the signal is
   * aborted, when the caller or its link is closed, when QUEUED requests wait already, and when no answer arrives
   * within `budgetMs` + GRACE_MS.
   */
  #request(handle: Handle, frames: Frames, wait: WaitOptions): Promise<AnswerFrame> {
    const { signal, onStage, onProgress, budgetMs, last, waitFor = 'completed' } = wait;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#link.status.state === 'closed') return Promise.reject(closedError(this.#link.status, handle));
    if (this.#queue.size >= QUEUED) {
      return Promise.reject(new CallerError('overloaded', 'Too many waits are queued.', { handle }));
    }
    const ref = `r${++this.#refs}`;
    const { promise, resolve, reject } = Promise.withResolvers<AnswerFrame>();
    const endsAt = this.clock.now() + budgetMs;
    const state = { admitted: false, resumed: false, early: null, endsAt };
    const progress = progressSink(onProgress, last, this.#options.onError);
    const stopWatching = this.#watch(ref, wait);
    this.#queue.set(ref, { handle, ...frames, ...state, waitFor, onStage, progress, stopWatching, resolve, reject });
    this.#link.connect();
    this.#pump();
    return promise;
  }

  #watch(ref: string, { signal, budgetMs }: WaitOptions): () => void {
    const cancelTimer = this.clock.after(budgetMs + GRACE_MS, () => this.#leave(ref, null));
    if (!signal) return cancelTimer;
    const aborted = (): void => this.#leave(ref, signal);
    signal.addEventListener('abort', aborted, { once: true });
    return () => {
      cancelTimer();
      signal.removeEventListener('abort', aborted);
    };
  }

  /** Ends a wait. `signal`: the signal that was aborted; null if no answer arrived in time. */
  #leave(ref: string, signal: AbortSignal | null): void {
    const request = this.#sent.get(ref) ?? this.#queue.get(ref);
    if (!request) return;
    const { handle } = request;
    if (this.#sent.has(ref)) this.#link.send({ type: 'leave', ref });
    this.#drop(ref, request);
    request.reject(signal ? signal.reason : new CallerError('unreachable', 'The relay did not answer.', { handle }));
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
      this.#link.sendText(request.frame(ref));
    }
  }

  #statusChanged(status: LinkStatus): void {
    if (status.state === 'connected') this.#resume();
    if (status.state === 'closed') this.#closed(status);
    guarded(() => this.#options.onStatus?.(status), this.#options.onError);
  }

  #resume(): void {
    for (const [ref, request] of this.#sent) {
      request.resumed = request.admitted;
      request.early = null;
      const leftMs = request.endsAt - this.clock.now();
      this.#link.sendText(request.admitted ? request.again(ref, leftMs) : request.frame(ref));
    }
  }

  #closed(status: Closed): void {
    const left = [...this.#sent.values(), ...this.#queue.values()];
    this.#sent.clear();
    this.#queue.clear();
    for (const { handle, reject, stopWatching } of left) {
      stopWatching();
      reject(closedError(status, handle));
    }
  }

  #frame(frame: LinkFrame): void {
    if (!('ref' in frame) || frame.ref === undefined || frame.type === 'site_ack') return;
    const request = this.#sent.get(frame.ref);
    if (!request) return;
    if (frame.type === 'stage') {
      request.admitted = true;
      const stage = wordOf(STAGES, frame.stage);
      return guarded(() => stage && request.onStage?.(stage), this.#options.onError);
    }
    if (frame.type === 'progress') return request.progress?.(frame.payload, frame.number);
    if (frame.type === 'outcome' && isEarly(request, frame, this.clock.now())) return this.#hold(request, frame);
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
    if (request.resumed && frame.code === 'not_found') request.resolve(forgotten(request));
    else request.reject(refusalOf(request.handle, frame));
  }
}

type WaitOptions = Pick<AwaitOptions, 'signal' | 'onStage' | 'onProgress' | 'waitFor'> & {
  readonly budgetMs: number;
  /** The number before that of the first report of progress; undefined: unknown. */
  readonly last?: number;
};

type Closed = Extract<LinkStatus, { state: 'closed' }>;

function closedError({ reason, message }: Closed, handle: Handle): CallerError {
  return new CallerError(reason, reason === 'closed' ? 'The caller was closed.' : message, { handle });
}

// Builds the requests that a caller sends over its link, and reads the answers. Does no I/O.

type OutcomeFrame = Extract<LinkFrame, { type: 'outcome' }>;
type RefusedFrame = Extract<LinkFrame, { type: 'refused' }>;
type AnswerFrame = Extract<LinkFrame, { type: 'outcome' | 'receipt' }>;

type PendingRequest = {
  readonly handle: Handle;
  readonly endsAt: number;
  readonly waitFor: WireWaitStage;
  frame(ref: string): string;
  /**
   * Returns the frame that is sent on a new link instead of `frame`, if the relay has confirmed that the command is
   * admitted.
   */
  again(ref: string, leftMs: number): string;
  /** Whether the relay confirmed that the command is admitted. */
  admitted: boolean;
  resumed: boolean;
  /**
   * The `outcome` frame with which the relay ended this wait too early: before the stage of `waitFor` and before
   * `endsAt`. Null without one. The relay does so when it shuts down, so the wait continues over the next link. If the
   * link stays up for EARLY_MS, this frame is the answer.
   */
  early: OutcomeFrame | null;
  readonly onStage: InvokeOptions['onStage'] | undefined;
  readonly progress: ProgressSink | undefined;
  /** Cancels the wait's timer and removes its abort listener. Called when the wait is over. */
  readonly stopWatching: () => void;
  readonly resolve: (frame: AnswerFrame) => void;
  readonly reject: (error: unknown) => void;
};

type Frames = Pick<PendingRequest, 'frame' | 'again'>;

/** The longest time for which the relay accepts an await, in milliseconds. */
const LONGEST_WAIT_MS = 600_000;

/** Whether the relay ended a wait that has reached neither its stage nor its time limit. */
function isEarly({ waitFor, endsAt }: PendingRequest, frame: AnswerFrame, now: number): frame is OutcomeFrame {
  if (frame.type !== 'outcome' || frame.outcome !== undefined || now >= endsAt) return false;
  return waitFor === 'completed' || (waitFor === 'acknowledged' && frame.stage !== 'acknowledged');
}

function invokeFrames({ handle, target, params, options }: InvokeCall, trace: WireTrace): Frames {
  const traced = { trace_id: options.traceId, parent_span_id: options.parentSpanId, ...trace };
  const fields = {
    ...idsOf(handle),
    action: target.action,
    instance_id: target.instanceId,
    context_id: options.contextId,
    wait_for: options.waitFor,
    ...updatesOf(options),
    connect_within_ms: options.connectWithinMs,
    respond_within_ms: options.respondWithinMs,
    ...traced,
  };
  const payload = jsonOf(params) ?? null;
  return {
    frame: (ref) => upFrame({ type: 'invoke', ref, ...fields }, payload),
    again: (ref, leftMs) => awaitFrames(handle, options, traced).again(ref, leftMs),
  };
}

function awaitFrames(handle: Handle, wait: AwaitOptions, trace: WireTrace): Frames {
  const fields = { ...idsOf(handle), wait_for: wait.waitFor, ...updatesOf(wait), ...trace };
  return {
    frame: (ref) => upFrame({ type: 'await', ref, ...fields, within_ms: wait.withinMs }),
    again: (ref, leftMs) => upFrame({ type: 'await', ref, ...fields, within_ms: clamp(leftMs) }),
  };
}

function cancelFrames(handle: Handle, reason: string | undefined): Frames {
  const frame = (ref: string): string => upFrame({ type: 'cancel', ref, ...idsOf(handle), reason });
  return { frame, again: frame };
}

function invocationOf<T>(handle: Handle, frame: AnswerFrame): Invocation<T> {
  if (frame.type !== 'outcome') throw new CallerError('bad_answer', 'The relay gave no outcome.', { handle });
  const { outcome, rpc_id, stage, execution, error_code, error_message, payload } = frame;
  const error = error_code === undefined ? null : { code: error_code, message: error_message ?? error_code };
  const result = parse<T>(handle, payload);
  const end = readOutcome({ rpcId: rpc_id ?? null, outcome: outcome ?? null, stage, execution, result, error });
  if (end) return { handle, ...end };
  throw new CallerError('bad_answer', `Unknown outcome: ${outcome}.`, { handle });
}

/**
 * Returns an outcome frame for a command that the relay admitted before a link broke and no longer knows. The relay has
 * lost its data, so the command may have run.
 */
function forgotten({ handle }: PendingRequest): OutcomeFrame {
  return {
    type: 'outcome',
    payload: null,
    ref: 'forgotten',
    command_id: handle.commandId,
    outcome: 'outcome_unknown',
    stage: 'terminal',
    execution: 'may_have_run',
    error_code: 'store_lost',
    error_message: 'The relay no longer knows the command.',
  };
}

function refusalOf(handle: Handle, { code, message, by, retry_after_ms, share }: RefusedFrame): CallerError {
  const retryAfterMs = retry_after_ms ?? null;
  return new CallerError(code, message, { handle, by: by ?? null, retryAfterMs, share: share ?? null });
}

/**
 * Returns the header members that ask for stages and progress. The first stage is always requested, because it confirms
 * the admission. What is sent on the next link depends on the admission.
 */
function updatesOf({ onStage, onProgress }: Pick<AwaitOptions, 'onStage' | 'onProgress'>) {
  const stages = onStage === undefined ? ('first' as const) : ('all' as const);
  return { stages, progress: onProgress && true };
}

function idsOf({ userId, clientId, commandId }: Handle) {
  return { user_id: userId, client_id: clientId, command_id: commandId };
}

function clamp(ms: number): number {
  return Math.max(0, Math.min(LONGEST_WAIT_MS, Math.floor(ms)));
}

/** Parses the result. Nothing checks that it has the type that the caller assumes. */
function parse<T>(handle: Handle, payload: string | null): T {
  try {
    return JSON.parse(payload ?? 'null');
  } catch (cause) {
    throw new CallerError('bad_answer', 'The result is not JSON.', { handle, cause });
  }
}

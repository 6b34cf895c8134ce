/**
 * Runs commands: checks and authorizes them, asks for approval, runs the handler with its time limits, and reports the
 * end.
 */
import type { DownFrame } from '../../protocol/frames.ts';
import { deeperThan } from '../../protocol/bounds.ts';
import { parseObject } from '../../protocol/json.ts';
import {
  NO_PARENT,
  SERVER,
  isTraceContext,
  traceStateOf,
  type ContextLike,
  type TraceApi,
} from '../../protocol/trace.ts';
import type { Params } from '../link/actions.ts';
import { upFrame } from '../link/session.ts';
import { RawJson } from '../link/raw-json.ts';
import { elapsed, systemClock, unlessAborted, type Clock } from '../link/platform.ts';
import { SCOPE, endSpan, spanAttributes, type WireTrace } from '../link/spans.ts';
import { ActionError, boundedMessage } from './action-errors.ts';
import { failure, returned, thrown, toJson, type EndReport, type Stop } from './end-reports.ts';
import type { ActionRegistry, SchemaCheck, Registered } from './registry.ts';
import type { ActionRequest, Call, Judge, RuntimeOptions, SiteCall } from './types.ts';

/**
 * The most commands in progress. This is more than the relay has in flight, because handlers may go on after their
 * deadline.
 */
const MAX_RUNNING = 256;

/**
 * The fraction of a command's time within which its handler must start. If it has not started by then, the command is
 * refused: the refusal reaches the relay before the deadline, and proves that the handler did not run.
 */
const START_PART = 0.9;
/** How many rounds of microtasks a handler has to stop when the client closes. */
const STOP_ROUNDS = 30;

export type CommandFrame = Extract<DownFrame, { type: 'command' }>;

type CommandsOptions = Pick<RuntimeOptions, 'authorize' | 'approve' | 'clock' | 'tracing'> & {
  readonly registry: ActionRegistry;
  /** Whether the client refuses new commands, because its person has paused it. */
  isPaused(): boolean;
  /** Whether the client still reports this context. */
  hasContext(contextId: string): boolean;
  /** The deepest nesting of JSON that the relay accepts. */
  maxDepth(): number;
  ack(commandId: string): void;
  /** Sends the waiting frames at once. */
  flush(): void;
  /**
   * Sends a progress frame. Returns false if it was not sent. `isLast`: whether this is the last report before the end,
   * which is sent even if the rate is exceeded.
   */
  progress(frame: string, isLast: boolean): boolean;
  /** Receives the errors that a callback or a handler threw by mistake. */
  report(error: unknown): void;
  /** Receives the end of a command. Called exactly once for each command that was passed to `start`. */
  end(commandId: string, end: EndReport): void;
};

type Running = {
  readonly abort: AbortController;
  stop: Stop | null;
  started: boolean;
  /** The frame of the latest progress report, if it was not sent. */
  unsent?: string | undefined;
};
/**
 * `at`: the deadline of a command, in elapsed milliseconds. `isSure`: whether the relay gave the age of the command's
 * frame. Only then is the deadline exact enough to refuse the command because it is over.
 */
type Deadline = { readonly at: number; readonly isSure: boolean };
type Job = {
  readonly action: Registered;
  readonly request: ActionRequest;
  readonly running: Running;
  readonly limit: Deadline;
};

export class Commands {
  readonly #options: CommandsOptions;
  readonly #clock: Clock;
  readonly #all = new Map<string, Running>();
  readonly #leases = new Set<string>();
  #shut = false;

  constructor(options: CommandsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Whether the handler of the command is running. */
  started(commandId: string): boolean {
    return this.#all.get(commandId)?.started ?? false;
  }

  /**
   * Starts a new command: runs the checks, asks for authorization and approval, and then runs the handler. `ageMs`: how
   * long ago the frame was sent; null if the relay does not say.
   */
  start(frame: CommandFrame, ageMs: number | null = null): void {
    const leftMs = Math.max(0, frame.remaining_ms - (ageMs ?? 0));
    const limit = { at: elapsed(this.#clock) + leftMs, isSure: ageMs !== null };
    const admitted = this.#tooLate(limit) ?? this.#admit(frame);
    if ('type' in admitted) return this.#refuse(frame, admitted);
    const running: Running = { abort: new AbortController(), stop: null, started: false };
    this.#all.set(frame.command_id, running);
    const arrival = { signal: running.abort.signal, now: this.#clock.now() };
    const request = requestOf(frame, admitted.parsed, { ...arrival, leftMs });
    const atDeadline = () => stop(running, 'deadline', 'The deadline has passed.');
    const atLatestStart = () => running.started || atDeadline();
    const cancels = [
      this.#clock.after(leftMs, atDeadline),
      this.#clock.after(Math.floor(leftMs * START_PART), atLatestStart),
    ];
    const { tracing } = this.#options;
    const run = (): Promise<EndReport> => this.#run({ action: admitted.action, request, running, limit });
    void (tracing ? traced(tracing, frame, { isKnown: true, run }) : run()).then((end) => {
      for (const cancel of cancels) cancel();
      if (!this.#all.delete(frame.command_id)) return;
      // The latest report is sent, so that the caller sees it, and its number shows how many earlier ones were not
      // sent.
      if (running.unsent) this.#options.progress(running.unsent, true);
      this.#options.end(frame.command_id, end);
    });
  }

  #refuse(frame: CommandFrame, end: EndReport): void {
    const { tracing, registry } = this.#options;
    const isKnown = registry.get(frame.action) !== undefined;
    if (tracing) void traced(tracing, frame, { isKnown, run: () => end });
    this.#options.end(frame.command_id, end);
  }

  /** Aborts one command. Does nothing if the command is unknown. */
  cancel(commandId: string, reason: string | undefined): void {
    const running = this.#all.get(commandId);
    if (running) stop(running, 'cancelled', boundedMessage(reason ?? 'The command was cancelled.'));
  }

  /** Aborts all commands. Each of them ends when its handler stops. */
  abort(): void {
    for (const running of this.#all.values()) stop(running, 'closed', 'The client closed.');
  }

  /**
   * Aborts all commands, and reports an end even for those whose handlers do not stop at once, so that no caller waits
   * until the deadline. What these handlers return later is ignored.
   */
  async giveUp(): Promise<void> {
    this.abort();
    // A handler that stops when its signal is aborted stops within these rounds of microtasks.
    for (let round = 0; round < STOP_ROUNDS && this.size > 0; round++) await null;
    for (const [commandId, { started }] of this.#all) {
      this.#all.delete(commandId);
      const end = started
        ? failure('handler_failed', 'The client closed while the handler ran; it may have finished.')
        : failure('client_denied', 'The client is closing.');
      this.#options.end(commandId, end);
    }
  }

  /** Refuses all further commands. */
  shut(): void {
    this.#shut = true;
  }

  /** Makes the checks that need no callback. Returns the action and its params, or the end of a refused command. */
  #admit(frame: CommandFrame): { readonly action: Registered; readonly parsed: ParsedParams } | EndReport {
    if (this.#shut) return failure('client_denied', 'The client is closing.');
    if (this.#options.isPaused()) return failure('paused', 'The client is paused.');
    if (this.#all.size >= MAX_RUNNING) return failure('client_denied', 'Too many commands are running.');
    const action = this.#options.registry.get(frame.action);
    if (!action) return failure('unknown_action', boundedMessage(`This client has no action ${frame.action}.`));
    const parsed = parseParams(frame.payload);
    if (!parsed) return failure('arguments_invalid', 'The params are not an object.');
    return this.#contextGone(frame.context_id) ?? { action, parsed };
  }

  /**
   * Returns the end of a command whose deadline is over before its handler starts; null if there is time left, or if
   * the deadline is not exact.
   */
  #tooLate({ at, isSure }: Deadline): EndReport | null {
    return isSure && elapsed(this.#clock) >= at ? failure('too_late', 'The deadline has passed.') : null;
  }

  /** Returns the end of a command whose context is gone; null if the context exists, or if the command names none. */
  #contextGone(contextId: string | null | undefined): EndReport | null {
    if (contextId == null || this.#options.hasContext(contextId)) return null;
    return failure('context_gone', 'The context is gone.');
  }

  /**
   * Checks the params. Returns the job with the params as the schema converts them, or the end of a refused command.
   */
  async #check(job: Job, check: SchemaCheck): Promise<Job | EndReport> {
    let { params } = job.request;
    const judge: Judge = async () => {
      const checked = await check(params);
      if ('fault' in checked) return { allow: false, message: checked.fault };
      // The schema guarantees the type that the handler expects.
      params = checked.value as Params;
      return true;
    };
    const refused = await this.#refusalOf(job, judge, ['arguments_invalid', 'The schema failed.']);
    return refused ?? { ...job, request: { ...job.request, params } };
  }

  /** Asks the authorizer, and then the approver. Returns the end of a refused command; null if the command may run. */
  async #judge(job: Job): Promise<EndReport | null> {
    const { authorize, approve } = this.#options;
    const refused = authorize
      ? await this.#refusalOf(job, authorize, ['client_denied', 'The client does not allow this command.'])
      : null;
    if (refused || !job.action.spec.approval) return refused;
    return this.#refusalOf(job, approve, ['approval_denied', 'The command was not approved.']);
  }

  /**
   * Returns null if the judge allows the command, and its end otherwise. The command is refused if the judge throws, if
   * it answers anything but a yes, or if it has not answered when the signal is aborted. `onError` receives what the
   * judge throws; the caller does not see it. If the command was cancelled before the judge answered, it ends as
   * cancelled.
   */
  async #refusalOf(
    { request, running }: Job,
    judge: Judge | undefined,
    [code, no]: readonly [code: string, message: string],
  ): Promise<EndReport | null> {
    const decided = new AbortController();
    let message = no;
    try {
      const verdict = await Promise.race([judge?.(request), abortOf(request.signal, decided.signal)]);
      if (verdict === true) return null;
      if (typeof verdict === 'object' && verdict !== null) {
        if (verdict.allow === true) return null;
        message = boundedMessage(verdict.message ?? no);
      }
    } catch (error) {
      this.#options.report(error);
    } finally {
      decided.abort();
    }
    return running.stop === 'cancelled' ? { type: 'cancelled', payload: null } : failure(code, message);
  }

  /** Runs a command until it ends. Never rejects. */
  async #run(given: Job): Promise<EndReport> {
    const job = given.action.check ? await this.#check(given, given.action.check) : given;
    if ('type' in job) return job;
    const refused = await this.#judge(job);
    if (refused) return refused;
    const { action, request, running } = job;
    // The decisions may have taken long: by now the context may be gone, or the deadline over.
    const gone = this.#contextGone(request.contextId) ?? this.#tooLate(job.limit);
    if (gone) return gone;
    const leased = action.spec.lease === true;
    if (leased && this.#leases.has(action.name)) return failure('lease_busy', 'The action is running already.');
    if (leased) this.#leases.add(action.name);
    running.started = true;
    this.#options.ack(request.commandId);
    // The `ack` is sent before the handler starts, because the handler may block the process. This pause lets other
    // commands add their acks to the same message.
    await null;
    this.#options.flush();
    const { timeoutMs } = action.spec;
    const tooLong = () => stop(running, 'timeout', 'The time of the action is over.');
    const cancelTimer = timeoutMs === undefined ? () => {} : this.#clock.after(timeoutMs, tooLong);
    try {
      return await resultOf(job, await action.run(request.params, this.#callOf(job)));
    } catch (error) {
      const end = thrown(error, running.abort.signal, running.stop);
      // A handler fails on purpose with an ActionError, or because its signal was aborted. Every other error is a fault
      // of the handler, which the program should see.
      if (end.type === 'error' && end.code === 'handler_failed' && !(error instanceof ActionError) && !running.stop)
        this.#options.report(error);
      return end;
    } finally {
      cancelTimer();
      if (leased) this.#leases.delete(action.name);
    }
  }

  #callOf({ action, request, running, limit }: Job): Call {
    const { params: _, ...call } = request;
    const { timeoutMs = Infinity } = action.spec;
    const endsAt = Math.min(limit.at, elapsed(this.#clock) + timeoutMs);
    // The deadline in `call` is shown to people, so it is wall time.
    const deadline = Math.min(call.deadline, this.#clock.now() + timeoutMs);
    // Reports that are not sent are counted too, so that callers see how many they missed.
    let number = 0;
    return {
      ...call,
      deadline,
      remainingMs: () => Math.max(0, endsAt - elapsed(this.#clock)),
      progress: (value) => {
        const json = this.#all.get(call.commandId) === running ? toJson(value ?? null) : undefined;
        if (typeof json !== 'string') return false;
        const frame = upFrame({ type: 'progress', command_id: call.commandId, number: ++number }, json);
        if (deeperThan(json, this.#options.maxDepth())) return false;
        const isSent = this.#options.progress(frame, false);
        running.unsent = isSent ? undefined : frame;
        return isSent;
      },
    };
  }
}

/** Returns the end of a command from the value that its handler returned. */
async function resultOf({ action, request }: Job, value: unknown): Promise<EndReport> {
  const { checkResult } = action;
  const end = returned(value);
  if (!checkResult || end.type === 'error') return end;
  const checked = await unlessAborted(request.signal, checkResult(JSON.parse(end.payload ?? 'null')));
  if ('fault' in checked)
    return failure('result_unavailable', boundedMessage(`The result does not match its schema: ${checked.fault}`));
  return value instanceof RawJson ? end : returned(checked.value);
}

function stop(running: Running, why: Stop, message: string): void {
  if (running.stop !== null) return;
  running.stop = why;
  running.abort.abort(new DOMException(message, 'AbortError'));
}

function requestOf(
  frame: CommandFrame,
  { params, site }: ParsedParams,
  { signal, now, leftMs }: { readonly signal: AbortSignal; readonly now: number; readonly leftMs: number },
): ActionRequest {
  return {
    commandId: frame.command_id,
    action: frame.action,
    params,
    paramsText: frame.payload ?? '{}',
    signal,
    site,
    contextId: frame.context_id ?? null,
    deadline: now + leftMs,
    traceId: frame.trace_id ?? null,
    parentSpanId: frame.parent_span_id ?? null,
    traceFlags: frame.trace_flags ?? null,
    traceState: frame.trace_state ?? null,
  };
}

/** Resolves to false when `signal` is aborted. Removes its listener when `done` is aborted. */
function abortOf(signal: AbortSignal, done: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    else signal.addEventListener('abort', () => resolve(false), { once: true, signal: done });
  });
}

const RESERVED = '__cooperative_site_';

type ParsedParams = { readonly params: Params; readonly site: SiteCall | null };

/**
 * Parses a payload; null if it is not a JSON object. The members that only the relay may add are moved from the params
 * to `site`.
 */
function parseParams(payload: string | null): ParsedParams | null {
  const value = payload === null ? {} : parseObject(payload);
  if (value === null) return null;
  const members = Object.entries(value);
  const reserved = new Map(members.filter(([name]) => name.startsWith(RESERVED)));
  if (reserved.size === 0) return { params: Object.fromEntries(members), site: null };
  return { params: Object.fromEntries(members.filter(([name]) => !reserved.has(name))), site: siteOf(reserved) };
}

function siteOf(reserved: ReadonlyMap<string, unknown>): SiteCall | null {
  const sessionId = reserved.get(`${RESERVED}session_id`);
  const siteId = reserved.get(`${RESERVED}id`);
  return typeof sessionId === 'string' && typeof siteId === 'string' ? { sessionId, siteId } : null;
}

// Records a trace span for each command, from its arrival at this client to its end.

/**
 * The name of the span if this client does not have the action. Callers can invent any number of action names, which
 * would give too many span names.
 */
const OTHER_METHOD = '_OTHER';
const SAMPLED = '01';
const NOT_SAMPLED = '00';

/**
 * Runs a command within a span. The span is active while the command runs, and its parent is the span that the frame
 * names. `isKnown`: whether this client has the action.
 */
function traced(
  tracing: TraceApi,
  frame: CommandFrame,
  { isKnown, run }: { readonly isKnown: boolean; readonly run: () => EndReport | Promise<EndReport> },
): Promise<EndReport> {
  const { action, command_id } = frame;
  const name = isKnown ? action : OTHER_METHOD;
  const method = { 'rpc.method': name, ...(!isKnown && { 'rpc.method_original': action }) };
  // The call is not sampled, and there is no trace id by which a span could learn this. So no span is started.
  if (!frame.trace_id && frame.trace_flags === NOT_SAMPLED) return Promise.resolve(run());
  const options = { kind: SERVER, attributes: { ...spanAttributes(command_id), ...method } };
  return tracing.getTracer(SCOPE).startActiveSpan(name, options, parentOf(tracing, frame), async (span) => {
    const end = await run();
    if (end.type === 'error') endSpan(span, 'failed', end.code);
    else endSpan(span, end.type === 'result' ? 'completed' : 'cancelled');
    return end;
  });
}

function parentOf(
  tracing: TraceApi,
  { trace_id = '', parent_span_id = '', trace_flags = SAMPLED, trace_state }: WireTrace,
): ContextLike {
  if (!isTraceContext(trace_id, parent_span_id)) return NO_PARENT;
  const context = {
    traceId: trace_id,
    spanId: parent_span_id,
    traceFlags: Number.parseInt(trace_flags, 16),
    isRemote: true,
    ...(trace_state && { traceState: traceStateOf(trace_state) }),
  };
  return tracing.setSpanContext(NO_PARENT, context);
}

/** Runs commands: local checks, authorization, approval, the handler, its deadline, its end and its span. */
import type { DownFrame } from '../../protocol/frames.ts';
import { RawJson, parseObject } from '../../protocol/json.ts';
import {
  NO_PARENT,
  SERVER,
  isTraceContext,
  traceStateOf,
  type ContextLike,
  type TraceApi,
} from '../../protocol/trace.ts';
import type { Params } from '../link/actions.ts';
import { upFrame } from '../link/link.ts';
import { guarded, systemClock, type Clock } from '../link/platform.ts';
import { SCOPE, endSpan, spanAttributes, type WireTrace } from '../link/relay-request.ts';
import { boundedMessage, failure, returned, thrown, toJson, type EndReport, type Stop } from './ends.ts';
import type { ActionRegistry, SchemaCheck, Registered } from './registry.ts';
import type { ActionRequest, Call, Judge, RuntimeOptions, SiteCall } from './types.ts';

/** The most commands in progress. It is above the relay's window: handlers may run on after their deadline. */
const MAX_RUNNING = 256;

export type CommandFrame = Extract<DownFrame, { type: 'command' }>;

type CommandsOptions = Pick<RuntimeOptions, 'authorize' | 'approve' | 'onError' | 'clock' | 'tracing'> & {
  readonly registry: ActionRegistry;
  /** Whether the client still reports this context. */
  hasContext(contextId: string): boolean;
  ack(commandId: string): void;
  /** Sends the waiting reports at once. */
  flush(): void;
  /** Returns false when the frame of progress was not sent. `isLast`: it is sent whatever the rate: the end follows. */
  progress(frame: string, isLast: boolean): boolean;
  /** Called exactly once for each command that was passed to `start`. */
  end(commandId: string, end: EndReport): void;
};

type Running = {
  readonly abort: AbortController;
  stop: Stop | null;
  started: boolean;
  /** The frame of the last report of progress, if it was not sent. */
  unsent?: string | undefined;
};
type Job = { readonly action: Registered; readonly request: ActionRequest; readonly running: Running };

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

  /** Whether the command's handler has started and not yet ended. */
  started(commandId: string): boolean {
    return this.#all.get(commandId)?.started ?? false;
  }

  /** Starts a new command: checks, authorization, approval, then the handler. */
  start(frame: CommandFrame): void {
    const admitted = this.#admit(frame);
    if ('type' in admitted) return this.#refuse(frame, admitted);
    const running: Running = { abort: new AbortController(), stop: null, started: false };
    this.#all.set(frame.command_id, running);
    const arrival = { signal: running.abort.signal, now: this.#clock.now() };
    const request = requestOf(frame, admitted.parsed, arrival);
    const atDeadline = () => stop(running, 'deadline', 'The deadline has passed.');
    const cancelTimer = this.#clock.after(Math.max(0, frame.remaining_ms), atDeadline);
    const { tracing } = this.#options;
    const run = (): Promise<EndReport> => this.#run({ action: admitted.action, request, running });
    void (tracing ? traced(tracing, frame, { isKnown: true, run }) : run()).then((end) => {
      cancelTimer();
      this.#all.delete(frame.command_id);
      // So that a caller sees the last report, and how many before it were not sent.
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

  /** Aborts one command. Does nothing for an unknown command. */
  cancel(commandId: string, reason: string | undefined): void {
    const running = this.#all.get(commandId);
    if (running) stop(running, 'cancelled', boundedMessage(reason ?? 'The command was cancelled.'));
  }

  /** Aborts all commands. Each still ends by itself. */
  abort(): void {
    for (const running of this.#all.values()) stop(running, 'closed', 'The client closed.');
  }

  /** Refuses all later commands. */
  shut(): void {
    this.#shut = true;
  }

  /** Makes the checks that need no callback. Returns the action with its params, or the end of a refused command. */
  #admit(frame: CommandFrame): { readonly action: Registered; readonly parsed: ParsedParams } | EndReport {
    if (this.#shut) return failure('client_denied', 'The client is closing.');
    if (this.#all.size >= MAX_RUNNING) return failure('client_denied', 'Too many commands are running.');
    const action = this.#options.registry.get(frame.action);
    if (!action) return failure('unknown_action', boundedMessage(`This client has no action ${frame.action}.`));
    const parsed = parseParams(frame.payload);
    if (!parsed) return failure('arguments_invalid', 'The params are not an object.');
    return this.#contextGone(frame.context_id) ?? { action, parsed };
  }

  /** Returns the end of a command whose context is gone; null if it is there, or if the command names none. */
  #contextGone(contextId: string | null | undefined): EndReport | null {
    if (contextId == null || this.#options.hasContext(contextId)) return null;
    return failure('context_gone', 'The context is gone.');
  }

  /** Checks the params. Returns the job with the params that the schema gives, or the end of a refused command. */
  async #check(job: Job, check: SchemaCheck): Promise<Job | EndReport> {
    let { params } = job.request;
    const judge: Judge = async () => {
      const checked = await check(params);
      if ('fault' in checked) return { allow: false, message: checked.fault };
      // The type of the handler follows from the schema.
      params = checked.value as Params;
      return true;
    };
    const refused = await this.#refusalOf(job, judge, ['arguments_invalid', 'The schema failed.']);
    return refused ?? { ...job, request: { ...job.request, params } };
  }

  /** Asks the local authorizer, then the approver. Returns the end of a refused command; null if it may run. */
  async #judge(job: Job): Promise<EndReport | null> {
    const { authorize, approve } = this.#options;
    const refused = authorize
      ? await this.#refusalOf(job, authorize, ['client_denied', 'The client does not allow this command.'])
      : null;
    if (refused || !job.action.spec.approval) return refused;
    return this.#refusalOf(job, approve, ['approval_denied', 'The command was not approved.']);
  }

  /**
   * Returns null when the judge allows the command, otherwise its end. The command is also refused if the judge throws,
   * answers anything but a yes, or has not answered when the signal is aborted. `onError` receives what the judge
   * throws; the caller does not see it. A command that was cancelled before the judge answered ends as cancelled.
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
      guarded(() => this.#options.onError?.(error), undefined);
    } finally {
      decided.abort();
    }
    return running.stop === 'cancelled' ? { type: 'cancelled', payload: null } : failure(code, message);
  }

  /** Runs a command to its end. Never rejects. */
  async #run(given: Job): Promise<EndReport> {
    const job = given.action.check ? await this.#check(given, given.action.check) : given;
    if ('type' in job) return job;
    const refused = await this.#judge(job);
    if (refused) return refused;
    const { action, request, running } = job;
    // The context may have gone while somebody decided about the command.
    const gone = this.#contextGone(request.contextId);
    if (gone) return gone;
    const leased = action.spec.lease === true;
    if (leased && this.#leases.has(action.name)) return failure('lease_busy', 'The action is running already.');
    if (leased) this.#leases.add(action.name);
    running.started = true;
    this.#options.ack(request.commandId);
    // The `ack` is sent before the handler starts, because the handler may block the process. This pause lets the acks
    // of other commands be sent with it.
    await null;
    this.#options.flush();
    const { timeoutMs } = action.spec;
    const tooLong = () => stop(running, 'timeout', 'The time of the action is over.');
    const cancelTimer = timeoutMs === undefined ? () => {} : this.#clock.after(timeoutMs, tooLong);
    try {
      return await resultOf(action, await action.run(request.params, this.#callOf(job)));
    } catch (error) {
      return thrown(error, running.abort.signal, running.stop);
    } finally {
      cancelTimer();
      if (leased) this.#leases.delete(action.name);
    }
  }

  #callOf({ action, request, running }: Job): Call {
    const { params: _, ...call } = request;
    const deadline = Math.min(call.deadline, this.#clock.now() + (action.spec.timeoutMs ?? Infinity));
    // Counts reports that are not sent too, so that callers see that they missed them.
    let number = 0;
    return {
      ...call,
      deadline,
      remainingMs: () => Math.max(0, deadline - this.#clock.now()),
      progress: (value) => {
        const json = this.#all.get(call.commandId) === running ? toJson(value ?? null) : undefined;
        if (typeof json !== 'string') return false;
        const frame = upFrame({ type: 'progress', command_id: call.commandId, number: ++number }, json);
        const isSent = this.#options.progress(frame, false);
        running.unsent = isSent ? undefined : frame;
        return isSent;
      },
    };
  }
}

/** Returns the end of a command whose handler returned. */
async function resultOf({ checkResult }: Registered, value: unknown): Promise<EndReport> {
  const end = returned(value);
  if (!checkResult || end.type === 'error') return end;
  const checked = await checkResult(JSON.parse(end.payload ?? 'null'));
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
  { signal, now }: { readonly signal: AbortSignal; readonly now: number },
): ActionRequest {
  return {
    commandId: frame.command_id,
    action: frame.action,
    params,
    paramsText: frame.payload ?? '{}',
    signal,
    site,
    contextId: frame.context_id ?? null,
    deadline: now + Math.max(0, frame.remaining_ms),
    traceId: frame.trace_id ?? null,
    parentSpanId: frame.parent_span_id ?? null,
    traceFlags: frame.trace_flags ?? null,
    traceState: frame.trace_state ?? null,
  };
}

/** Resolves with false as soon as `signal` is aborted. Removes its listener when `done` is aborted. */
function abortOf(signal: AbortSignal, done: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    else signal.addEventListener('abort', () => resolve(false), { once: true, signal: done });
  });
}

const RESERVED = '__cooperative_site_';

type ParsedParams = { readonly params: Params; readonly site: SiteCall | null };

/**
 * Parses a payload; null if it is not a JSON object. Reserved members, which only the relay may add, are moved from
 * params to `site`.
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

// Records the spans of commands, from their arrival to their end at this client.

/**
 * The name of the spans of all commands whose action this client does not have. Callers may invent any number of action
 * names, so these do not become names of spans.
 */
const OTHER_METHOD = '_OTHER';
const SAMPLED = '01';
const NOT_SAMPLED = '00';

/**
 * Runs a command within a span, which is active while the command runs. Its parent is the span that the relay's frame
 * names. `isKnown`: this client has the action.
 */
function traced(
  tracing: TraceApi,
  frame: CommandFrame,
  { isKnown, run }: { readonly isKnown: boolean; readonly run: () => EndReport | Promise<EndReport> },
): Promise<EndReport> {
  const { action, command_id } = frame;
  const name = isKnown ? action : OTHER_METHOD;
  const method = { 'rpc.method': name, ...(!isKnown && { 'rpc.method_original': action }) };
  // The call is not sampled. There is no trace id with which to pass this on to a span, so no span is started.
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

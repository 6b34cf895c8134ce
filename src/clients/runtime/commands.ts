/** Runs commands: local checks, authorization, approval, the handler, its deadline and its end. */
import type { DownFrame } from '../../protocol/frames.ts';
import { systemClock, type Clock } from '../link/clock.ts';
import { failure, returned, thrown, toJson, type EndReport, type Stop } from './ends.ts';
import { boundedMessage } from './errors.ts';
import { refusalOf } from './judge.ts';
import { MAX_RUNNING } from './limits.ts';
import { parseParams, type ParsedParams } from './params.ts';
import type { Registered, ActionRegistry } from './registry.ts';
import { traced } from './tracing.ts';
import type { ActionRequest, Call, RuntimeOptions } from './types.ts';

export type CommandFrame = Extract<DownFrame, { type: 'command' }>;

export type CommandsOptions = Pick<RuntimeOptions, 'authorize' | 'approve' | 'onError' | 'clock' | 'tracing'> & {
  readonly registry: ActionRegistry;
  ack(commandId: string): void;
  /** Sends the waiting reports at once. */
  flush(): void;
  /** Returns false when the progress was dropped. */
  progress(commandId: string, json: string): boolean;
  /** Called exactly once for each command that was passed to `start`. */
  end(commandId: string, end: EndReport): void;
};

type Running = { readonly abort: AbortController; stop: Stop | null; started: boolean };
type Job = { readonly action: Registered; readonly request: ActionRequest; readonly running: Running };

/** The commands in progress at this client. */
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
    const atDeadline = () => stop(running, 'deadline', 'The deadline passed.');
    const cancelTimer = this.#clock.after(Math.max(0, frame.remaining_ms), atDeadline);
    const { tracing } = this.#options;
    const run = (): Promise<EndReport> => this.#run({ action: admitted.action, request, running });
    void (tracing ? traced(tracing, frame, { isKnown: true, run }) : run()).then((end) => {
      cancelTimer();
      this.#all.delete(frame.command_id);
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
    const wrong = action.validate?.(parsed.params) ?? null;
    return wrong === null ? { action, parsed } : failure('arguments_invalid', wrong);
  }

  async #judge({ action, request, running }: Job): Promise<EndReport | null> {
    const { authorize, approve, onError } = this.#options;
    if (authorize) {
      const no = await refusalOf({ judge: authorize, request, no: 'The client does not allow this command.', onError });
      if (no !== null) return refusedAs('client_denied', no, running);
    }
    if (action.spec.approval) {
      const no = await refusalOf({ judge: approve, request, no: 'The command was not approved.', onError });
      if (no !== null) return refusedAs('approval_denied', no, running);
    }
    return null;
  }

  /** Runs a command to its end. Never rejects. */
  async #run(job: Job): Promise<EndReport> {
    const refused = await this.#judge(job);
    if (refused) return refused;
    const { action, request, running } = job;
    const leased = action.spec.lease === true;
    if (leased && this.#leases.has(action.name))
      return failure('lease_busy', 'Another command of this action is running.');
    if (leased) this.#leases.add(action.name);
    running.started = true;
    this.#options.ack(request.commandId);
    // The `ack` is sent before the handler starts, because the handler may block the process. This pause lets the acks
    // of other commands be sent with it.
    await null;
    this.#options.flush();
    const { timeoutMs } = action.spec;
    const tooLong = () => stop(running, 'timeout', 'The time limit of the action has passed.');
    const cancelTimer = timeoutMs === undefined ? () => {} : this.#clock.after(timeoutMs, tooLong);
    try {
      return returned(await action.run(request.params, this.#callOf(job)));
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
    return {
      ...call,
      deadline,
      remainingMs: () => Math.max(0, deadline - this.#clock.now()),
      progress: (value) => {
        const json = this.#all.get(call.commandId) === running ? toJson(value ?? null) : undefined;
        return typeof json === 'string' && this.#options.progress(call.commandId, json);
      },
    };
  }
}

function stop(running: Running, why: Stop, message: string): void {
  if (running.stop !== null) return;
  running.stop = why;
  running.abort.abort(new DOMException(message, 'AbortError'));
}

/**
 * Returns the end of a command whose handler did not run. A command that was cancelled ends as cancelled, any other as
 * refused.
 */
function refusedAs(code: 'client_denied' | 'approval_denied', message: string, { stop }: Running): EndReport {
  return stop === 'cancelled' ? { type: 'cancelled', payload: null } : failure(code, message);
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
    deadline: now + Math.max(0, frame.remaining_ms),
    traceId: frame.trace_id ?? null,
    parentSpanId: frame.parent_span_id ?? null,
    traceFlags: frame.trace_flags ?? null,
    traceState: frame.trace_state ?? null,
  };
}

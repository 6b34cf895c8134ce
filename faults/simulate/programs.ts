/**
 * Programs of users in a simulation: a client with handlers, and a caller. Each runs the client library in a process of
 * its own, which drifts, is paused, sleeps, and is started again.
 */
import type { Scope } from '../../src/core/auth/principal.ts';
import type { WireStage } from '../../src/protocol/codes.ts';
import { CallerError, createLinkCaller, type Caller, type Invocation } from '../../src/clients/caller/index.ts';
import type { LinkStatus } from '../../src/clients/link/link-status.ts';
import type { Clock } from '../../src/clients/link/platform.ts';
import { ActionCancelled, ActionError } from '../../src/clients/runtime/action-errors.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import type { Call as HandlerCall } from '../../src/clients/runtime/types.ts';
import { between } from '../lib/random.ts';
import { userToken } from './entry.ts';
import {
  LOST,
  frameWatch,
  outcomeOf,
  progressWatch,
  reportedEnd,
  type Call,
  type Run,
  type Told,
  type Work,
} from './ledger.ts';
import { noteAnswer, requestAt, stageOf, type Operation } from './linearize.ts';
import { BALANCER_URL, type Connection, type LinkNetwork } from './link-network.ts';
import { SimulatedProcess } from './process.ts';
import type { Simulation } from './virtual.ts';

export const CLIENT = 'desk';
export const ACTION = 'work';
/** How long a call waits for its client, and for the answer, at most, in milliseconds. */
export const TIMES = { connectWithinMs: 8_000, respondWithinMs: 15_000 } as const;
/** How many contexts a client has. */
const CONTEXTS = 3;
/** How long a token is valid, in milliseconds. */
const TOKEN_MS = { least: 20_000, most: 90_000 } as const;
/** How long one is valid that expires before a program renews it, in milliseconds. */
const EXPIRING_MS = { least: 1_500, most: 6_000 } as const;
/** Within what time a program that leaves in a hurry gives up, in milliseconds. */
const HURRIED_MS = 300;
/** How long a program takes to start, in milliseconds. */
const START_MS = { least: 20, most: 1_000 } as const;

export type ProgramParts = {
  readonly simulation: Simulation;
  readonly network: LinkNetwork;
  /** Finds a call by its command id. */
  readonly callOf: (commandId: string) => Call | undefined;
  /** Receives what was wrong. */
  readonly report: (fault: string) => void;
  /** Counts something that happened. */
  readonly count: (what: string) => void;
  /** How many of the tokens expire before they are renewed: a part of all. */
  readonly expiring: () => number;
  /** Issues a token to a program. Absent: one without an identity, as `userToken` does. */
  readonly tokenOf?: (program: string, of: TokenWish) => string;
  /** Called when a relay has closed a link for good. Returns whether that may be. Absent: it may not. */
  readonly onClosed?: (program: Program, reason: string) => boolean;
};
/** A token that is wanted. `ms`: how long it is valid, in milliseconds; Infinity if it does not expire. */
export type TokenWish = { readonly userId: string; readonly scopes: readonly Scope[]; readonly ms: number };

/** A program, run by run. */
export abstract class Program {
  readonly name: string;
  protected readonly parts: ProgramParts;
  #process: SimulatedProcess | null = null;
  #runs = 0;
  #isConnected = false;
  /** How long its machine has slept in this run, in milliseconds: some monotonic clocks stand still then. */
  #sleptMs = 0;

  constructor(name: string, parts: ProgramParts) {
    this.name = name;
    this.parts = parts;
  }

  /** Whether the relay has accepted its link. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Its newest connection that is open; null: none is. */
  get connection(): Connection | null {
    return this.#process && this.parts.network.openOf(this.#process);
  }

  protected get runs(): number {
    return this.#runs;
  }

  /** Starts the program, unless it runs. */
  start(): void {
    if (this.#process) return;
    const { simulation, network } = this.parts;
    const { random } = simulation;
    const drift = { aheadMs: between(random, -3_000, 3_000), rate: 1 + (random() - 0.5) / 50 };
    const process = new SimulatedProcess(simulation, `${this.name}/${++this.#runs}`, drift);
    process.onDeath = () => network.programDied(process);
    this.#process = process;
    this.#sleptMs = 0;
    this.run(process);
  }

  /**
   * Ends the program at once, as a page that is loaded again or a crash does, and starts it again after a while.
   * `againMs`: after how long it does the same once more, while the first frames of its link have not arrived.
   */
  restart(againMs: number | null = null): void {
    const { simulation, network } = this.parts;
    if (!this.#process) return;
    this.#process.die();
    this.#process = null;
    this.#isConnected = false;
    simulation.after(between(simulation.random, START_MS.least, START_MS.most), 'a program starts', () => {
      this.start();
      if (againMs === null) return;
      network.stallingProcess = this.#process;
      simulation.after(againMs, 'a program starts again', () => this.restart());
    });
  }

  /** Nothing runs for a while. `sleeps`: the machine sleeps, and its monotonic clock stands still. */
  pause(ms: number, sleeps: boolean): void {
    const process = this.#process;
    process?.pause();
    this.parts.simulation.after(ms, 'a program goes on', () => {
      if (sleeps && process === this.#process) this.#sleptMs += ms;
      process?.resume();
    });
  }

  stepClock(ms: number): void {
    this.#process?.stepClock(ms);
  }

  protected abstract run(process: SimulatedProcess): void;

  /** The options of a link of this run. */
  protected linkOf(process: SimulatedProcess, userId: string, scopes: readonly Scope[] = ['connect', 'invoke']) {
    const { simulation, network, report } = this.parts;
    const clock: Clock = {
      now: process.clock.now,
      monotonic: () => process.clock.monotonic() - this.#sleptMs,
      // Timers of browsers and of Node count whole milliseconds.
      after: (ms, run) => process.clock.after(Math.max(1, Math.ceil(ms)), run),
    };
    return {
      url: BALANCER_URL,
      homes: ['node-*'],
      token: () => this.#token(userId, scopes),
      WebSocket: network.socketsOf(process, (url) => {
        if (url !== BALANCER_URL) this.parts.count('link: to its home');
        return frameWatch((fault) => report(`${process.name}: ${fault}`));
      }),
      clock,
      random: simulation.random,
      onError: (error: unknown) => this.#failed(error),
      onStatus: (status: LinkStatus) => this.#changed(process, status),
    };
  }

  #token(userId: string, scopes: readonly Scope[]): string {
    const { simulation, tokenOf } = this.parts;
    const ms = this.#validMs();
    return tokenOf ? tokenOf(this.name, { userId, scopes, ms }) : userToken(simulation, userId, scopes, ms);
  }

  #validMs(): number {
    const { simulation, expiring } = this.parts;
    const { least, most } = simulation.random() < expiring() ? EXPIRING_MS : TOKEN_MS;
    return between(simulation.random, least, most);
  }

  /** The library passes on what the relay refused. Anything else is a mistake. */
  #failed(error: unknown): void {
    const text = String(error);
    if (text.startsWith('Error: The relay refused')) this.parts.count(`refused: ${text.slice(18, 80)}`);
    else this.parts.report(`${this.name}: ${error instanceof Error ? error.stack : text}`);
  }

  /** A link that a program keeps is not closed for good. */
  #changed(process: SimulatedProcess, status: LinkStatus): void {
    this.#isConnected = status.state === 'connected';
    if (status.state === 'disconnected') this.parts.count(`link lost: ${status.reason}`);
    if (status.state !== 'closed' || status.reason === 'client_closed') return;
    if (!this.parts.onClosed?.(this, status.reason))
      this.parts.report(`the link of ${process.name} is closed for good: ${status.reason}. ${status.message}`);
  }
}

/** The client of a user. Each run is a new instance. */
export class ClientProgram extends Program {
  readonly userId: string;
  #runtime: Runtime | null = null;
  #made = 0;
  /** The contexts that it reports now. No id is used again. */
  contexts: readonly string[] = [];

  constructor(userId: string, parts: ProgramParts) {
    super(`client-${userId}`, parts);
    this.userId = userId;
  }

  /** The ends that the relay has not acknowledged, and the handlers that run. */
  get unfinished(): number {
    return (this.#runtime?.unacknowledged ?? 0) + (this.#runtime?.running ?? 0);
  }

  /** A context is opened, and the oldest of several is closed. */
  changeContexts(): void {
    const kept = this.contexts.slice(1 - CONTEXTS);
    this.contexts = [...kept, `${this.name}-context-${++this.#made}`];
    this.#runtime?.reportContexts(
      this.contexts.map((contextId) => ({ contextId, status: 'idle', ownership: 'worker' })),
    );
  }

  /** The person at the client stops its calls, or lets them go on. */
  async pauseCalls(reason: string): Promise<void> {
    if (!this.#runtime) throw new Error('the client has never started');
    await this.#runtime.pause(reason);
  }

  async resumeCalls(): Promise<void> {
    await this.#runtime?.resume();
  }

  /** Ends the program in order, and starts it again. In a hurry it gives up what has not ended, or is not acknowledged. */
  leave(isHurried: boolean): void {
    const runtime = this.#runtime;
    const options = isHurried ? { withinMs: between(this.parts.simulation.random, 0, HURRIED_MS) } : {};
    void runtime?.close(options).then(() => runtime === this.#runtime && this.restart());
  }

  protected run(process: SimulatedProcess): void {
    // The library sets an exit code if a link is closed for good. Here that is for the judges.
    globalThis.process.exitCode ??= 0;
    const { count } = this.parts;
    const name = `${this.name}-${this.runs}`;
    this.#runtime = createRuntime({
      ...this.linkOf(process, this.userId),
      ...{ clientId: CLIENT, clientType: 'browser', instanceId: name, places: true },
      actions: [{ name: ACTION, run: (params, call) => this.#handle(process, params as Work, call) }],
      onDrop: ({ reason }) => count(`end dropped: ${reason}`),
    });
    this.contexts = [];
    for (let n = 0; n < CONTEXTS; n++) this.changeContexts();
    this.#runtime.connect();
  }

  #handle(process: SimulatedProcess, work: Work, handled: HandlerCall): Promise<unknown> {
    const { callOf, report } = this.parts;
    const { commandId, contextId } = handled;
    const call = callOf(commandId);
    if (!call) throw new Error(`${commandId} was never called`);
    if (contextId !== call.contextId) report(`${commandId} names ${call.contextId}, and ran in ${contextId}`);
    if (contextId !== null && !this.contexts.includes(contextId))
      report(`${commandId} ran in ${contextId}, which is gone`);
    const { simulation } = this.parts;
    const arrival: Operation = { from: simulation.now, to: simulation.now, may: null, claim: { kind: 'begun' } };
    call.history.push(arrival);
    const run: Run = { by: process.name, reports: 0, end: null };
    call.runs.push(run);
    return runHandler(process, work, handled, { call, run }).finally(() => {
      if (run.end) call.history.push(requestAt(simulation.now, { kind: 'end', end: reportedEnd(run.end) }));
    });
  }
}

/** Does the work of a command, and notes what it did. */
async function runHandler(
  process: SimulatedProcess,
  work: Work,
  handled: HandlerCall,
  { call, run }: { readonly call: Call; readonly run: Run },
): Promise<unknown> {
  for (let step = 1; step <= work.steps; step++) {
    await rest(process, work.ms / work.steps, work.isStubborn ? null : handled.signal);
    if (handled.signal.aborted && !work.isStubborn) {
      const value = { stopped: step };
      run.end = { kind: 'cancelled', value };
      throw new ActionCancelled(value);
    }
    run.reports++;
    handled.progress({ step });
  }
  if (work.fails) {
    run.end = { kind: 'failed', message: `${call.commandId} fails` };
    throw new ActionError(run.end.message);
  }
  run.end = { kind: 'completed', value: { did: call.commandId, text: 'x'.repeat(work.chars) } };
  return run.end.value;
}

/** Resolves after a while, or when the signal is aborted. */
function rest(process: SimulatedProcess, ms: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve) => {
    process.clock.after(ms, resolve);
    signal?.addEventListener('abort', () => resolve());
  });
}

/**
 * What became of a request: the relay's answer, or the code with which it failed. `mayHaveRun`: an earlier attempt of
 * the same request was not answered.
 */
export type Answer = { readonly told: Told } | { readonly failed: string; readonly mayHaveRun?: boolean };

/** The caller of a user. */
export class CallerProgram extends Program {
  readonly userId: string;
  #caller: Caller | null = null;
  /** What is asked and not answered. A new run asks again. */
  readonly #asked = new Map<Call, (answer: Answer) => void>();
  /** Over which connection each was asked, and whether a cancel that followed over the same one found nothing. */
  readonly #sent = new Map<Call, { readonly over: Connection | null; isOvertaken: boolean }>();

  constructor(userId: string, parts: ProgramParts) {
    super(`caller-${userId}`, parts);
    this.userId = userId;
  }

  protected run(process: SimulatedProcess): void {
    this.#caller = createLinkCaller(this.linkOf(process, this.userId));
    const open = [...this.#asked];
    this.#asked.clear();
    for (const [call, answer] of open) this.invoke(call, answer);
  }

  invoke(call: Call, answer: (answer: Answer) => void): void {
    const { userId, commandId, work, contextId, times } = call;
    const { simulation, report } = this.parts;
    const { now: from } = simulation;
    const caller = this.#caller;
    const watch = progressWatch(call, report);
    const sent = { over: this.connection, isOvertaken: false };
    this.#sent.set(call, sent);
    const settle = (one: Answer): void => {
      // Nothing comes of what a program did before it ended.
      if (caller !== this.#caller || !this.#asked.delete(call)) return;
      this.#sent.delete(call);
      if (sent.isOvertaken && 'told' in one && outcomeOf(one.told) !== LOST && this.connection === sent.over)
        report(`${commandId} was called and then cancelled over one connection, and the cancel found no such command`);
      answer(one);
    };
    this.#asked.set(call, answer);
    const options = {
      ...{ commandId, ...times, ...(contextId !== null && { contextId }) },
      ...(work.steps > 1 && {
        onProgress: ({ value, number, missed }: Parameters<NonNullable<OnProgress>>[0]) => watch(value, number, missed),
        onStage: (stage: WireStage) => call.history.push(noticeOf(stage, from, simulation.now)),
      }),
    };
    caller?.invoke({ userId, clientId: CLIENT, action: ACTION }, work, options).then(
      (invocation) => settle(answerOf(invocation)),
      (error: unknown) => {
        const mayHaveRun = error instanceof CallerError && error.mayHaveRun;
        settle({ failed: this.#codeOf(error), mayHaveRun });
      },
    );
  }

  cancel(call: Call): void {
    const { userId, commandId, history } = call;
    const { simulation, count } = this.parts;
    const { connection } = this;
    const sent = this.#sent.get(call);
    const request = requestAt(simulation.now, { kind: 'cancel' });
    history.push(request);
    this.#caller?.cancel({ userId, clientId: CLIENT, commandId }).then(
      ({ state }) => {
        count(`cancel: ${state}`);
        noteAnswer(request, simulation.now, { kind: 'receipt', state });
      },
      (error: unknown) => {
        const code = this.#codeOf(error);
        count(`cancel: ${code}`);
        if (code !== 'not_found') return;
        noteAnswer(request, simulation.now, { kind: 'receipt', state: code });
        if (sent && connection !== null && sent.over === connection) sent.isOvertaken = true;
      },
    );
  }

  #codeOf(error: unknown): string {
    if (error instanceof CallerError) return error.code;
    this.parts.report(`${this.name}: ${error instanceof Error ? error.stack : String(error)}`);
    return 'a mistake';
  }
}

/** What a caller learns of a command that is in this stage. */
function noticeOf(stage: WireStage, from: number, to: number): Operation {
  return { from, to, may: null, claim: { kind: 'stage', stage: stageOf(stage) } };
}

type OnProgress = NonNullable<Parameters<Caller['invoke']>[2]>['onProgress'];

function answerOf(invocation: Invocation): Answer {
  const { outcome, execution } = invocation;
  if (outcome === 'pending') return { failed: 'pending' };
  const { code = null, message = null } = 'error' in invocation ? invocation.error : { code: invocation.code };
  const value = 'result' in invocation ? invocation.result : 'partial' in invocation ? invocation.partial : null;
  return { told: { outcome, execution, code, message, value } };
}

/**
 * A workload of calls: callers invoke actions of clients. Clients and most callers are programs with the client
 * libraries, over simulated connections to the gateways of relays; other calls go to the core of a relay, as those over
 * HTTP do.
 */
import { endOf } from '../../src/core/calls/call.ts';
import type { Core, Invocation } from '../../src/core/core.ts';
import { trustJson } from '../../src/core/json.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import type { Log } from '../../src/core/ports.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { between, pick } from '../lib/random.ts';
import {
  LOST,
  endIn,
  faultsOf,
  outcomeOf,
  progressWatch,
  timeFaultsOf,
  type Call,
  type Told,
  type Work,
} from './ledger.ts';
import { noteAnswer, noteRefusal, requestAt, unexplained, type Operation } from './linearize.ts';
import { LinkNetwork, type Door } from './link-network.ts';
import {
  ACTION,
  CLIENT,
  CallerProgram,
  ClientProgram,
  TIMES,
  authenticatorOf,
  type Answer,
  type ProgramParts,
} from './programs.ts';
import { readRecord } from './readers.ts';
import { codeOf, coreOf, countingLog, onRecord, type OpenRelay, type Relay, type Relays } from './relays.ts';
import { HEAL_MS, type Workload } from './world.ts';

/** The users, each with one client and one caller. */
const USERS = ['user-0', 'user-1', 'user-2', 'user-3', 'user-4', 'user-5'] as const;
/** The longest time of a handler, in milliseconds, and the longest text of a result. */
const HANDLER_MS = 400;
const RESULT_CHARS = 20_000;
/** The longest time of a call that has little time, in milliseconds. The least is a second. */
const SHORT_MS = 3_000;
/** The longest trouble of a connection or a program, in milliseconds. */
const TROUBLE_MS = 9_000;
/** The part of the connections that stall before the first frame arrives. */
const STALLING = 0.05;
/** How many calls are asked for twice at once, by two callers. */
const TWICE = 0.05;
/** How many acts also read a record, and among how many of the last calls. */
const READ = 0.4;
const READ_AMONG = 12;
/** How long a message between a relay and a caller over HTTP takes, in milliseconds. */
const DELAY_MS = 5;
/** How long such a caller waits before it asks another relay, in milliseconds: longer than the call may take. */
const ASK_AGAIN_MS = TIMES.connectWithinMs + TIMES.respondWithinMs + 4_000;
/** How long what a client reports may take once it has a link, in milliseconds. */
const REPORT_MS = 500;
/** Within what time programs have noticed what is over, in milliseconds. */
const NOTICED_MS = 40_000;
/** How long a call may take once nothing is wrong, in milliseconds. */
const SOON_MS = 6_000;
/** How long a relay that leaves waits for commands in flight, in milliseconds. */
const DRAIN_MS = 2_000;

/** Failures of a request after which it is sent again: they may pass. */
const PASSES = /^(pending|unreachable|not_connected|draining|internal|rate_limited|\w+_unavailable|node_lost)$/;

const TROUBLES = [
  ...([
    'lost',
    'lost',
    'unnoticed by the relay',
    'unnoticed by the program',
    'stalls',
    'stalls up',
    'stalls down',
  ] as const),
  ...([
    'slow reader',
    'pause',
    'sleep',
    'clock',
    'client starts again',
    'client leaves',
    'client starts twice',
    'caller starts again',
  ] as const),
] as const;

/** A call, and what asks for it: the caller of its user, or a caller over HTTP. */
type Asked = { readonly call: Call; readonly over: CallerProgram | null };

export class Calls implements Workload {
  readonly #relays: Relays;
  readonly #network: LinkNetwork;
  readonly #doors = new Set<Door>();
  readonly #calls = new Map<string, Asked>();
  readonly #clients: readonly ClientProgram[];
  readonly #callers: readonly CallerProgram[];
  /** What callers over HTTP wait for, by relay: its end is told to them. */
  readonly #asking = new Map<Relay['process'], Set<() => void>>();
  readonly #askedTwice = new Set<Call>();
  #isOver = false;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    const { simulation } = relays;
    this.#network = new LinkNetwork(simulation, () => [...this.#doors].filter(({ process }) => !process.isDead));
    const parts: ProgramParts = {
      ...{ simulation, network: this.#network },
      callOf: (commandId) => this.#calls.get(commandId)?.call,
      report: (fault) => this.#reportUnlessLost(fault),
      count: (what) => relays.count(what),
    };
    this.#clients = USERS.map((userId) => new ClientProgram(userId, parts));
    this.#callers = USERS.map((userId) => new CallerProgram(userId, parts));
    this.#network.stalling = STALLING;
  }

  get acknowledged(): number {
    return [...this.#calls.values()].filter(({ call }) => call.told.length > 0).length;
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    const { process } = relay;
    const log = this.#log(relay);
    const core = coreOf(relay, log);
    await core.start();
    const gateway = createGateway({
      ...{ core, log, metrics: silentMetrics, clock: process.clock },
      authenticator: authenticatorOf(process.clock.now),
      ...{ allowedOrigins: null, trustProxy: false, refused() {} },
    });
    process.onDeath = () => this.#died(relay);
    relay.core = core;
    relay.leave = async () => {
      await core.drain(DRAIN_MS);
      await core.close();
      await new Promise<void>((turn) => process.loop.atTurnEnd(turn));
      await gateway.closeAll('draining');
    };
    this.#doors.add({
      process,
      accept: (socket, address) => gateway.accept(socket, address),
      onRecord: (run, holder) => onRecord(relay, run, holder),
    });
  }

  onGone(): void {}

  act(): void {
    this.#startAll();
    const call = this.#newCall();
    this.#begin(call, this.#random() < 0.75 ? this.#callerOf(call.userId) : null);
    if (this.#random() < TWICE) this.#askToo(call);
    if (this.#random() < 0.08) this.#cancelLater(call);
    if (this.#random() < READ) this.#read();
    if (this.#random() < 0.05) pick(this.#random, this.#clients).changeContexts();
    if (this.#random() < 0.03) this.#trouble();
  }

  finish(): void {
    this.#isOver = true;
    this.#startAll();
    this.#network.heal();
  }

  isDone(): boolean {
    return (
      [...this.#calls.values()].every(({ call }) => call.open === 0) &&
      this.#clients.every(({ unfinished }) => unfinished === 0)
    );
  }

  async judge(): Promise<readonly string[]> {
    const broken: string[] = [...(await this.#repeatAll()), ...(await this.#callAll())];
    for (const { call } of this.#calls.values()) {
      if (!this.#mayBeLost(call)) broken.push(...faultsOf(call));
      if (this.#relays.hasKeptTime(call.askedAt, call.toldAt)) broken.push(...timeFaultsOf(call));
      // A report that comes again may change a record at any time.
      const unlike = this.#relays.mayBeLost(call.askedAt, Infinity) ? null : unexplained(call.history);
      if (unlike !== null) broken.push(`${call.commandId}: ${unlike}`);
      const [told] = call.told;
      if (told) this.#relays.count(`call: ${outcomeOf(told)}${told.code === null ? '' : ` ${told.code}`}`);
    }
    return broken;
  }

  /** Repeats each answered call at every relay: each must tell the recorded outcome, and run nothing. */
  async #repeatAll(): Promise<readonly string[]> {
    const { simulation, living } = this.#relays;
    const broken: string[] = [];
    let open = 0;
    for (const relay of living)
      for (const { call } of this.#calls.values()) {
        // What an owner had not recorded when it lost the partition is not known any more: a repeat is a new call.
        if (!relay.core || call.told.length === 0 || call.told.some((told) => outcomeOf(told) === LOST)) continue;
        if (this.#mayBeLost(call)) continue;
        open++;
        const request = requestAt(simulation.now, { kind: 'admit' });
        call.history.push(request);
        invoke(relay.core, call).then(
          (answer) =>
            onRecord(
              relay,
              () => {
                open--;
                noteTold(request, simulation.now, answer);
                if ('told' in answer) call.told.push(answer.told);
                else broken.push(`${call.commandId} was repeated at ${relay.process.name}: ${answer.failed}`);
              },
              { destroy: () => open-- },
            ),
          (error: unknown) => {
            open--;
            broken.push(`${call.commandId} was repeated at ${relay.process.name}: ${codeOf(error)}`);
          },
        );
      }
    if (!(await simulation.run(HEAL_MS, () => open === 0))) broken.push(`${open} repeated calls were not answered`);
    return broken;
  }

  /** Once nothing is wrong any more, each client has a link, and each call completes for both of its callers. */
  async #callAll(): Promise<readonly string[]> {
    const { simulation } = this.#relays;
    const clients = this.#clients;
    // Programs that sleep go on, and notice which of their links are gone.
    await simulation.run(NOTICED_MS);
    await simulation.run(HEAL_MS, () => clients.every(({ isConnected }) => isConnected));
    const broken = clients.flatMap(({ name, isConnected }) => (isConnected ? [] : [`${name} has no link`]));
    // What clients report after a welcome arrives.
    await simulation.run(REPORT_MS);
    const calls = USERS.map((userId) => this.#begin(this.#newCall(userId, 1), this.#callerOf(userId)));
    for (const call of calls) this.#askToo(call);
    await simulation.run(SOON_MS, () => calls.every(({ open }) => open === 0));
    for (const { commandId, told, runs } of calls)
      if (told.length < 2 || runs.length === 0)
        broken.push(`${commandId}, of a time without faults: ${JSON.stringify(told)}`);
    return broken;
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  /** Whether something of a call may be lost: then it may run again. */
  #mayBeLost({ askedAt, toldAt }: Call): boolean {
    return this.#relays.mayBeLost(askedAt, toldAt);
  }

  #startAll(): void {
    for (const program of [...this.#clients, ...this.#callers]) program.start();
  }

  /** What is forgotten comes again: its command, and its reports. */
  #reportUnlessLost(fault: string): void {
    const { simulation } = this.#relays;
    if (!this.#relays.mayBeLost(0, simulation.now)) this.#report(fault);
  }

  #report(fault: string): void {
    this.#relays.trace(fault);
    this.broken.push(fault);
  }

  /** An error that a relay does not expect is a fault of it. */
  #log({ process }: Relay): Log {
    const counting = countingLog(this.#relays, process);
    return {
      ...counting,
      error: (fields, message) => {
        counting.error(fields, message);
        const { err } = fields;
        this.#report(`${process.name}: ${message}: ${err instanceof Error ? err.stack : String(err)}`);
      },
    };
  }

  #newCall(userId = pick(this.#random, USERS), names = 0.15): Call {
    const random = this.#random;
    const { contexts = [] } = this.#clients.find((client) => client.userId === userId) ?? {};
    const contextId = random() < names ? (contexts[Math.floor(random() * contexts.length)] ?? null) : null;
    const work: Work = {
      ms: between(random, 0, random() < 0.05 ? HANDLER_MS * 10 : HANDLER_MS),
      steps: random() < 0.4 ? between(random, 2, 6) : 1,
      fails: random() < 0.1,
      isStubborn: random() < 0.3,
      chars: random() < 0.03 ? RESULT_CHARS : 3,
    };
    const commandId = `call-${this.#calls.size}`;
    const askedAt = this.#relays.simulation.now;
    const times = {
      connectWithinMs: names < 1 && random() < 0.05 ? 0 : TIMES.connectWithinMs,
      respondWithinMs: names < 1 && random() < 0.05 ? between(random, 1_000, SHORT_MS) : TIMES.respondWithinMs,
    };
    const state = { askedAt, toldAt: Infinity, open: 0 };
    return { userId, commandId, work, contextId, times, runs: [], told: [], history: [], ...state };
  }

  #callerOf(userId: string): CallerProgram | null {
    return this.#callers.find((caller) => caller.userId === userId) ?? null;
  }

  /** `over`: null for a call over HTTP. */
  #begin(call: Call, over: CallerProgram | null): Call {
    const asked = { call, over };
    this.#calls.set(call.commandId, asked);
    this.#ask(asked);
    return call;
  }

  /** Another caller asks for the same call. */
  #askToo(call: Call): void {
    this.#askedTwice.add(call);
    this.#ask({ call, over: null });
  }

  #cancelLater(call: Call): void {
    const { simulation } = this.#relays;
    const cancel = (): void => this.#callerOf(call.userId)?.cancel(call);
    simulation.after(between(this.#random, 0, HANDLER_MS), 'a call is cancelled', cancel);
  }

  /** Reads the record of one of the last calls at any relay. */
  #read(): void {
    const { living } = this.#relays;
    const calls = [...this.#calls.values()].slice(-READ_AMONG);
    if (living.length === 0 || calls.length === 0) return;
    const { userId, commandId, history } = pick(this.#random, calls).call;
    readRecord(this.#relays, pick(this.#random, living), { userId, clientId: CLIENT, commandId }, history);
  }

  /** Asks for a call until there is an answer: the id makes sure that it runs once. */
  #ask(asked: Asked): void {
    const { simulation } = this.#relays;
    const { call, over } = asked;
    call.open++;
    const request = requestAt(simulation.now, { kind: 'admit' });
    call.history.push(request);
    const answer = (one: Answer): void => {
      noteTold(request, simulation.now, one);
      if ('told' in one) {
        this.#relays.trace(`${call.commandId} is told: ${JSON.stringify(one.told).slice(0, 160)}`);
        // One relay may have lost what another one knows.
        if (!this.#askedTwice.has(call) || outcomeOf(one.told) !== LOST) call.told.push(one.told);
        call.toldAt = simulation.now;
        call.open--;
        return;
      }
      this.#relays.trace(`${call.commandId} failed: ${one.failed}`);
      this.#relays.count(`request: ${one.failed}`);
      if (isRefusal(one)) call.open--;
      else
        simulation.after(between(this.#random, 100, 1_000), 'asks again', () => {
          call.open--;
          this.#ask(asked);
        });
    };
    if (over) over.invoke(call, answer);
    else this.#askRelay(call, answer);
  }

  /** Asks the core of a relay, and another one if that does not answer. */
  #askRelay(call: Call, answer: (answer: Answer) => void): void {
    const { simulation, living } = this.#relays;
    const ready = living.filter(({ core }) => core !== null);
    if (ready.length === 0) return answer({ failed: 'unreachable' });
    const relay = pick(this.#random, ready);
    const { process, core } = relay;
    let isAnswered = false;
    const settle = (one: Answer): void => {
      if (isAnswered) return;
      isAnswered = true;
      this.#asking.get(process)?.delete(lost);
      answer(one);
    };
    const lost = (): void => settle({ failed: 'unreachable' });
    this.#asking.set(process, (this.#asking.get(process) ?? new Set()).add(lost));
    simulation.after(ASK_AGAIN_MS, 'asks another', lost);
    const arrives = (what: string, run: () => void): void =>
      void simulation.after(between(this.#random, 0, DELAY_MS), what, run);
    process.after(between(this.#random, 0, DELAY_MS), 'a call arrives', () => {
      const watch = progressWatch(call, (fault) => this.#reportUnlessLost(fault));
      invoke(core as Core, call, watch).then(
        (one) => onRecord(relay, () => arrives('an answer arrives', () => settle(one)), { destroy: lost }),
        (error: unknown) => settle({ failed: codeOf(error) }),
      );
    });
  }

  #died({ process }: Relay): void {
    this.#network.relayDied(process);
    for (const lost of this.#asking.get(process) ?? [])
      this.#relays.simulation.after(between(this.#random, 0, DELAY_MS), 'a connection is lost', lost);
  }

  // Troubles of connections and programs, besides the faults of the deployment.

  #trouble(): void {
    if (this.#isOver) return;
    const { simulation } = this.#relays;
    const kind = pick(this.#random, TROUBLES);
    const ms = between(this.#random, 50, TROUBLE_MS);
    const program = pick(this.#random, [...this.#clients, ...this.#callers]);
    this.#relays.count(`trouble: ${kind}`);
    simulation.note(`${kind} ${program.name} ${ms}`);
    this.#relays.trace(`${kind}: ${program.name}, for ${ms} ms`);
    if (kind === 'pause' || kind === 'sleep') return program.pause(ms, kind === 'sleep');
    if (kind === 'clock') return program.stepClock(between(this.#random, -5_000, 5_000));
    if (kind === 'client starts again') return pick(this.#random, this.#clients).restart();
    if (kind === 'client starts twice') return pick(this.#random, this.#clients).restart(ms / 4);
    if (kind === 'client leaves') return pick(this.#random, this.#clients).leave();
    if (kind === 'caller starts again') return pick(this.#random, this.#callers).restart();
    const { open } = this.#network;
    if (open.length === 0) return;
    const connection = pick(this.#random, open);
    const { up, down } = connection;
    switch (kind) {
      case 'lost':
        return connection.break('both');
      case 'unnoticed by the relay':
        return connection.break('program');
      case 'unnoticed by the program':
        return connection.break('relay');
      case 'stalls':
        return connection.stall([up, down], ms);
      case 'stalls up':
        return connection.stall([up], ms);
      case 'stalls down':
        return connection.stall([down], ms);
      case 'slow reader':
        return connection.slow(ms);
    }
  }
}

/** Whether an answer proves that the request changed nothing: repeated, it would be refused again. */
function isRefusal(answer: Answer): boolean {
  return 'failed' in answer && answer.mayHaveRun !== true && !PASSES.test(answer.failed);
}

/**
 * Notes what a caller was told. A relay that has lost its partition says so before this is recorded: the answer says
 * nothing of the command.
 */
function noteTold(request: Operation, at: number, answer: Answer): void {
  if ('failed' in answer) {
    if (isRefusal(answer)) noteRefusal(request, at);
  } else if (outcomeOf(answer.told) !== LOST)
    noteAnswer(request, at, { kind: 'told', end: endIn(answer.told, answer.told.value) });
}

/** Invokes as a request over HTTP does. */
async function invoke(core: Core, call: Call, watch?: ReturnType<typeof progressWatch>): Promise<Answer> {
  const { userId, commandId, work, contextId, times } = call;
  const params = trustJson(JSON.stringify(work));
  const requester = { kind: 'user', userId, scopes: new Set(['invoke'] as const), expiresAt: null } as const;
  const answer = await core.rpc.invoke(requester, {
    ...{ userId, clientId: CLIENT, action: ACTION, params, commandId, contextId, ...times },
    onProgress: watch && (({ payload, number }) => watch(JSON.parse(payload), number, null)),
  });
  return answer.kind === 'refused' ? { failed: answer.code } : answerOf(answer);
}

function answerOf(answer: Exclude<Invocation, { kind: 'refused' }>): Answer {
  if (answer.kind === 'pending') return { failed: 'pending' };
  const { outcome, execution, error } = endOf(answer);
  if (outcome === null) return { failed: 'pending' };
  const [code, message] = [error?.code ?? null, error?.message ?? null];
  const told: Told = { outcome, execution, code, message, value: JSON.parse(answer.result ?? 'null') };
  return { told };
}

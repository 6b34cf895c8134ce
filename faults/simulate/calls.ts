/**
 * A workload of calls: callers invoke actions of clients. Clients and most callers are programs with the client
 * libraries, over simulated connections to the gateways of relays; other calls enter over HTTP.
 */
import { between, pick } from '../lib/random.ts';
import { CommandReads } from './command-reads.ts';
import { CommandStream } from './command-streams.ts';
import { openEntry } from './entry.ts';
import { HttpCaller } from './http-caller.ts';
import { HttpNetwork, type HttpDoor } from './http-network.ts';
import { LOST, endIn, faultsOf, outcomeOf, timeFaultsOf, type Call, type Work } from './ledger.ts';
import { noteAnswer, noteRefusal, requestAt, unexplained, type Operation } from './linearize.ts';
import { LinkNetwork, type Door } from './link-network.ts';
import { CLIENT, CallerProgram, ClientProgram, TIMES, type Answer, type ProgramParts } from './programs.ts';
import { readRecord } from './readers.ts';
import { faultLog, type OpenRelay, type Relay, type Relays } from './relays.ts';
import { HEAL_MS, type Workload } from './world.ts';

/** The users, each with one client and one caller. */
const USERS = ['user-0', 'user-1', 'user-2', 'user-3', 'user-4', 'user-5'] as const;
/** The longest time of a handler, in milliseconds, and the longest text of a result. */
const HANDLER_MS = 400;
const RESULT_CHARS = 20_000;
/** The longest time of a call that has little time, in milliseconds. The least is a second. */
const SHORT_MS = 3_000;
/** How many calls are made in a hurry at once. */
const HURRIED = 5;
/** After how long a caller hangs up whose command is late, in milliseconds, and how late it is at most. */
const HANGS_UP_MS = 500;
const LATE_MS = { least: -300, most: 900 } as const;
/** The part of the tokens of links that expire before they are renewed. */
const EXPIRING = 0.1;
/** The longest trouble of a connection or a program, in milliseconds. */
const TROUBLE_MS = 9_000;
/** The part of the connections that stall before the first frame arrives. */
const STALLING = 0.05;
/** How many calls are asked for twice at once, by two callers. */
const TWICE = 0.05;
/** How many acts also read a record, and among how many of the last calls. */
const READ = 0.4;
const READ_AMONG = 12;
/** How long what a client reports may take once it has a link, in milliseconds. */
const REPORT_MS = 500;
/** Within what time programs have noticed what is over, in milliseconds. */
const NOTICED_MS = 40_000;
/** How long a call may take once nothing is wrong, in milliseconds. */
const SOON_MS = 6_000;
/** How often the handlers of these calls report progress. */
const REPORTS = 4;

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
    'client leaves in a hurry',
    'client reads nothing',
    'command is late',
    'client starts twice',
    'caller starts again',
  ] as const),
] as const;

/**
 * A call, and what asks for it: the caller of its user, or a caller over HTTP. `hangsUpMs`: after how long this one hangs
 * up, to ask again after the time of the call.
 */
type Asked = { readonly call: Call; readonly over: CallerProgram | null; readonly hangsUpMs?: number };

export class Calls implements Workload {
  readonly #relays: Relays;
  readonly #network: LinkNetwork;
  readonly #http: HttpNetwork;
  readonly #httpCaller: HttpCaller;
  readonly #reads: CommandReads;
  #streams: readonly CommandStream[] = [];
  readonly #doors = new Set<Door & HttpDoor>();
  readonly #calls = new Map<string, Asked>();
  readonly #clients: readonly ClientProgram[];
  readonly #callers: readonly CallerProgram[];
  readonly #askedTwice = new Set<Call>();
  #isOver = false;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    const { simulation } = relays;
    const living = (): readonly (Door & HttpDoor)[] => [...this.#doors].filter(({ process }) => !process.isDead);
    this.#network = new LinkNetwork(simulation, living);
    this.#http = new HttpNetwork(simulation, living);
    const parts: ProgramParts = {
      ...{ simulation, network: this.#network },
      callOf: (commandId) => this.#calls.get(commandId)?.call,
      report: (fault) => this.#reportUnlessLost(fault),
      count: (what) => relays.count(what),
      expiring: () => (this.#isOver ? 0 : EXPIRING),
    };
    this.#httpCaller = new HttpCaller({ network: this.#http, report: parts.report, count: parts.count });
    this.#reads = new CommandReads({
      ...{ relays, network: this.#http, calls: () => [...this.#calls.values()].map(({ call }) => call) },
      report: (call, fault) => this.#reportOf(call, fault),
    });
    this.#clients = USERS.map((userId) => new ClientProgram(userId, parts));
    this.#callers = USERS.map((userId) => new CallerProgram(userId, parts));
    this.#network.stalling = STALLING;
  }

  get acknowledged(): number {
    return [...this.#calls.values()].filter(({ call }) => call.told.length > 0).length;
  }

  get open(): number {
    return this.#calls.values().reduce((sum, { call }) => sum + call.open, 0);
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    relay.process.onDeath = () => this.#died(relay);
    this.#doors.add(
      await openEntry(
        relay,
        faultLog(this.#relays, relay.process, (fault) => this.#report(fault)),
      ),
    );
  }

  onGone(): void {}

  act(): void {
    this.#startAll();
    if (this.#streams.length === 0) this.#startStreams();
    const call = this.#newCall();
    this.#begin(call, this.#random() < 0.75 ? this.#callerOf(call.userId) : null);
    if (this.#random() < TWICE) this.#askToo(call);
    if (this.#random() < 0.08) this.#cancelLater(call);
    if (this.#random() < READ) this.#read();
    if (this.#random() < 0.05) pick(this.#random, this.#clients).changeContexts();
    if (this.#random() < 0.4) this.#reads.act();
    if (this.#random() < 0.03) this.#trouble();
  }

  finish(): void {
    this.#isOver = true;
    this.#startAll();
    this.#network.heal();
    this.#http.heal();
  }

  /** Follows the commands of each user. */
  #startStreams(): void {
    const parts = {
      ...{ network: this.#http, callOf: (commandId: string) => this.#calls.get(commandId)?.call },
      report: (call: Call, fault: string) => this.#reportOf(call, fault),
      broken: (fault: string) => this.#report(fault),
      count: this.#relays.count,
    };
    this.#streams = USERS.map((userId) => new CommandStream(userId, parts));
  }

  isDone(): boolean {
    return (
      [...this.#calls.values()].every(({ call }) => call.open === 0) &&
      this.#clients.every(({ unfinished }) => unfinished === 0) &&
      this.#streams.every(({ isLive }) => isLive)
    );
  }

  async judge(): Promise<readonly string[]> {
    const broken: string[] = [...(await this.#repeatAll()), ...(await this.#callAll()), ...this.#connectionFaults()];
    await this.#reads.judge();
    for (const stream of this.#streams) stream.judge();
    for (const { call } of this.#calls.values()) {
      if (!this.#mayBeLost(call)) broken.push(...faultsOf(call));
      if (this.#relays.hasKeptTime(call.askedAt, call.toldAt)) broken.push(...timeFaultsOf(call, this.#relays.skewMs));
      // A report that comes again may change a record at any time.
      const unlike = this.#relays.mayBeLost(call.askedAt, Infinity) ? null : unexplained(call.history);
      if (unlike !== null) broken.push(`${call.commandId}: ${unlike}`);
      if (call.told.some((told) => outcomeOf(told) === LOST) && !this.#relays.mayBeGivenUp(call.askedAt))
        broken.push(`${call.commandId} is told as lost, and nothing was lost`);
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
        this.#repeat(call, relay.process.name, (answer) => {
          open--;
          noteTold(request, simulation.now, answer);
          if ('told' in answer) call.told.push(answer.told);
          else broken.push(`${call.commandId} was repeated at ${relay.process.name}: ${answer.failed}`);
        });
      }
    if (!(await simulation.run(HEAL_MS, () => open === 0))) broken.push(`${open} repeated calls were not answered`);
    return broken;
  }

  /** Repeats a call at a relay: later, if its user has too many requests now. */
  #repeat(call: Call, relay: string, done: (answer: Answer) => void): void {
    const repeated = (answer: Answer): void => {
      if ('told' in answer || answer.failed !== 'rate_limited') return done(answer);
      const again = (): void => this.#repeat(call, relay, done);
      this.#relays.simulation.after(between(this.#random, 100, 2_000), 'is repeated later', again);
    };
    this.#httpCaller.invoke(call, repeated, { relay });
  }

  /**
   * Once nothing is wrong any more, each client has a link, and each call completes for both of its callers, of whom one
   * at least gets all progress.
   */
  async #callAll(): Promise<readonly string[]> {
    const { simulation } = this.#relays;
    const clients = this.#clients;
    // Programs that sleep go on, and notice which of their links are gone.
    await simulation.run(NOTICED_MS);
    await simulation.run(HEAL_MS, () => clients.every(({ isConnected }) => isConnected));
    const broken = clients.flatMap(({ name, isConnected }) => (isConnected ? [] : [`${name} has no link`]));
    // What clients report after a welcome arrives.
    await simulation.run(REPORT_MS);
    const calls = USERS.map((userId) => {
      const call = this.#newCall(userId, 1);
      return this.#begin({ ...call, work: { ...call.work, steps: REPORTS } }, this.#callerOf(userId));
    });
    // A second caller does not admit the call: whoever does so need not ask for progress, and its reports may be early.
    await simulation.run(SOON_MS, () => calls.every(({ runs }) => runs.length > 0));
    for (const call of calls) this.#askToo(call);
    const programs = [...clients, ...this.#callers];
    const links = new Map(programs.map((program) => [program, program.connection]));
    await simulation.run(SOON_MS, () => calls.every(({ open }) => open === 0));
    for (const { userId, commandId, told, runs, heard } of calls) {
      // Without a link a client drops what it reports, and a caller gets nothing: their tokens may expire meanwhile.
      const ends = programs.filter((program) => program.userId === userId);
      const hadLinks = ends.every((program) => program.connection === links.get(program));
      const name = `${commandId}, of a time without faults`;
      if (told.length < 2 || runs.length === 0) broken.push(`${name}: ${JSON.stringify(told)}`);
      else if (heard < REPORTS && hadLinks)
        broken.push(`${name}: its callers got ${heard} of ${REPORTS} reports of progress`);
    }
    return broken;
  }

  /** Once nothing is wrong any more, no program has a connection besides that of its link. */
  #connectionFaults(): readonly string[] {
    const byProgram = Map.groupBy(this.#network.open, ({ program }) => program.process.name);
    return [...byProgram].flatMap(([name, { length }]) => (length > 1 ? [`${name} has ${length} connections`] : []));
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

  #reportOf(call: Call, fault: string): void {
    if (!this.#mayBeLost(call)) this.#reportUnlessLost(`${call.commandId} ${fault}`);
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

  /** `names`: the part of the calls that name a context. `hurried`: its time, if it has little. */
  #newCall(userId: string = pick(this.#random, USERS), names = 0.15, hurried: Call['times'] | null = null): Call {
    const random = this.#random;
    const times = hurried ?? {
      connectWithinMs: names < 1 && random() < 0.05 ? 0 : TIMES.connectWithinMs,
      respondWithinMs: names < 1 && random() < 0.05 ? between(random, 1_000, SHORT_MS) : TIMES.respondWithinMs,
    };
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
    const state = { askedAt, toldAt: Infinity, open: 0, heard: 0 };
    return { userId, commandId, work, contextId, times, runs: [], told: [], history: [], ...state };
  }

  #callerOf(userId: string): CallerProgram | null {
    return this.#callers.find((caller) => caller.userId === userId) ?? null;
  }

  /** `over`: null for a call over HTTP. */
  #begin(call: Call, over: CallerProgram | null, hangsUpMs?: number): Call {
    const asked: Asked = { call, over, ...(hangsUpMs !== undefined && { hangsUpMs }) };
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
    const isHttp = this.#random() < 0.3;
    const cancel = (): void => (isHttp ? this.#httpCaller.cancel(call) : this.#callerOf(call.userId)?.cancel(call));
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
    const { call, over, hangsUpMs } = asked;
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
      else {
        const restMs = hangsUpMs === undefined ? 0 : call.times.respondWithinMs + LATE_MS.most;
        simulation.after(restMs + between(this.#random, 100, 1_000), 'asks again', () => {
          call.open--;
          this.#ask({ call, over });
        });
      }
    };
    if (over) over.invoke(call, answer);
    else this.#httpCaller.invoke(call, answer, { withinMs: hangsUpMs });
  }

  #died({ process }: Relay): void {
    this.#network.relayDied(process);
    this.#http.relayDied(process);
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
    if (kind === 'client leaves') return pick(this.#random, this.#clients).leave(false);
    if (kind === 'client leaves in a hurry') return pick(this.#random, this.#clients).leave(true);
    if (kind === 'client reads nothing') return this.#hurryWhileUnread(pick(this.#random, this.#clients), ms);
    if (kind === 'command is late') return this.#beLate(pick(this.#random, this.#clients));
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

  /** Calls in a hurry wait for a client that reads nothing: nothing of the last ones is written to it. */
  #hurryWhileUnread({ userId, connection }: ClientProgram, ms: number): void {
    connection?.readNothing(ms);
    for (let n = 0; n < HURRIED; n++) {
      const call = this.#newCall(userId, 0, this.#hurry());
      this.#begin(call, this.#random() < 0.5 ? this.#callerOf(userId) : null);
    }
  }

  /** A command in a hurry arrives about when its time is over, and nobody waits for it then. */
  #beLate({ userId, connection }: ClientProgram): void {
    const times = this.#hurry();
    connection?.delayDown(times.respondWithinMs + between(this.#random, LATE_MS.least, LATE_MS.most));
    this.#begin(this.#newCall(userId, 0, times), null, between(this.#random, HANGS_UP_MS / 2, HANGS_UP_MS));
  }

  #hurry(): Call['times'] {
    return { connectWithinMs: 0, respondWithinMs: between(this.#random, 1_000, SHORT_MS) };
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

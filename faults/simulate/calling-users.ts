/**
 * The users of a workload that is about something else than calls: the client and the caller of each, and the calls
 * between these, each asked for until it is answered.
 */
import { between, pick } from '../lib/random.ts';
import { faultsOf, outcomeOf, type Call } from './ledger.ts';
import type { LinkNetwork } from './link-network.ts';
import { CallerProgram, ClientProgram, TIMES, type Answer, type ProgramParts } from './programs.ts';
import type { Relays } from './relays.ts';

export const USERS = ['user-0', 'user-1', 'user-2', 'user-3'] as const;
/** The longest time of a handler, in milliseconds. */
const HANDLER_MS = 400;
/** What happens to connections and clients, besides the faults of the deployment. */
const TROUBLES = ['lost', 'stalls', 'slow reader', 'client starts again'] as const;
/** The longest trouble of a connection, in milliseconds. */
export const TROUBLE_MS = 4_000;

type Parts = Pick<ProgramParts, 'tokenOf' | 'onClosed' | 'report'> & {
  readonly relays: Relays;
  readonly network: LinkNetwork;
};

export class CallingUsers {
  readonly #relays: Relays;
  readonly #network: LinkNetwork;
  readonly clients: readonly ClientProgram[];
  readonly #callers: readonly CallerProgram[];
  readonly #calls = new Map<string, Call>();

  constructor({ relays, network, ...given }: Parts) {
    this.#relays = relays;
    this.#network = network;
    const { simulation } = relays;
    const parts: ProgramParts = {
      ...{ ...given, simulation, network },
      callOf: (commandId) => this.callOf(commandId),
      count: (what) => relays.count(what),
      expiring: () => 0,
    };
    this.clients = USERS.map((userId) => new ClientProgram(userId, parts));
    this.#callers = USERS.map((userId) => new CallerProgram(userId, parts));
  }

  get acknowledged(): number {
    return this.#calls
      .values()
      .filter(({ told }) => told.length > 0)
      .toArray().length;
  }

  /** How many requests for calls have no answer. */
  get open(): number {
    return this.#calls.values().reduce((sum, call) => sum + call.open, 0);
  }

  /** Whether each client and each caller has a link. */
  get areConnected(): boolean {
    return [...this.clients, ...this.#callers].every(({ isConnected }) => isConnected);
  }

  /** Starts the programs that do not run. */
  start(): void {
    for (const program of [...this.clients, ...this.#callers]) program.start();
  }

  callOf(commandId: string): Call | undefined {
    return this.#calls.get(commandId);
  }

  /** Makes a call that nobody has asked for yet. */
  newCall(userId: string): Call {
    const { random, now } = this.#relays.simulation;
    const call: Call = {
      ...{ userId, commandId: `call-${this.#calls.size}`, contextId: null, times: TIMES },
      work: { ms: between(random, 0, HANDLER_MS), steps: 1, fails: false, isStubborn: random() < 0.3, chars: 3 },
      ...{ runs: [], told: [], history: [] },
      ...{ askedAt: now, toldAt: Infinity, open: 0, heard: 0 },
    };
    this.#calls.set(call.commandId, call);
    return call;
  }

  /** Makes a call, and lets the caller of its user ask for it until there is an answer. */
  call(userId: string): Call {
    const call = this.newCall(userId);
    this.#ask(call);
    return call;
  }

  #ask(call: Call): void {
    const { simulation, count } = this.#relays;
    const caller = this.#callers.find(({ userId }) => userId === call.userId);
    call.open++;
    const asks = (): void => {
      call.open--;
      this.#ask(call);
    };
    caller?.invoke(call, (answer: Answer) => {
      if ('told' in answer) {
        call.told.push(answer.told);
        call.toldAt = simulation.now;
        call.open--;
        return;
      }
      count(`request: ${answer.failed}`);
      simulation.after(between(simulation.random, 100, 1_000), 'asks again', asks);
    });
  }

  /** One trouble of a connection or of a client. `others`: further kinds, of which this calls `run`. */
  trouble<K extends string>(others: readonly K[], run: (kind: K, ms: number) => void): void {
    const { simulation, count } = this.#relays;
    const { random } = simulation;
    const kind = pick(random, [...TROUBLES, ...others]);
    const ms = between(random, 50, TROUBLE_MS);
    count(`trouble: ${kind}`);
    simulation.note(`${kind} ${ms}`);
    const other = others.find((one) => one === kind);
    if (other !== undefined) return run(other, ms);
    if (kind === 'client starts again') return pick(random, this.clients).restart();
    const { open } = this.#network;
    if (open.length === 0) return;
    const connection = pick(random, open);
    if (kind === 'lost') connection.break(pick(random, ['both', 'program', 'relay'] as const));
    else if (kind === 'stalls') connection.stall([connection.up, connection.down], ms);
    else connection.slow(ms);
  }

  /** Returns what was wrong with the answers, and counts these. */
  judge(): readonly string[] {
    const broken: string[] = [];
    for (const call of this.#calls.values()) {
      if (!this.#relays.mayBeLost(call.askedAt, call.toldAt)) broken.push(...faultsOf(call));
      const [told] = call.told;
      if (told) this.#relays.count(`call: ${outcomeOf(told)}${told.code === null ? '' : ` ${told.code}`}`);
    }
    return broken;
  }
}

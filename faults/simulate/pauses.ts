/**
 * A workload of pauses: callers call actions of clients, and people stop calls and let them go on. Nothing that a pause
 * covers may be written to a client between its answer and the resume.
 */
import { isRecord } from '../../src/core/json.ts';
import type { PauseRequest } from '../../src/core/pauses/pauses.ts';
import type { AdminPrincipal, UserPrincipal } from '../../src/core/auth/principal.ts';
import { between, pick } from '../lib/random.ts';
import { CallingUsers, USERS } from './calling-users.ts';
import { openEntry } from './entry.ts';
import type { Call } from './ledger.ts';
import { LinkNetwork, type Door } from './link-network.ts';
import { ACTION, CLIENT, type ClientProgram } from './programs.ts';
import { codeOf, faultLog, onRecord, type OpenRelay, type Relay, type Relays } from './relays.ts';
import type { Workload } from './world.ts';

/** How often an act is also a pause, a resume, and a trouble of a connection. */
const PAUSING = 0.12;
const RESUMING = 0.1;
const TROUBLING = 0.05;
/** How many pauses hold at once, at most, so that calls go on besides. */
const HOLDING = 3;
/** How long a pause with an end lasts, and how far the clocks of deployments may jump, in milliseconds. */
const LASTING_MS = { least: 4_000, most: 9_000 } as const;
const CLOCKS_MS = 2_500;
/** How often a person looks at the end whether anything is still stopped, and for how long nothing must be. */
const LOOK_MS = 1_000;
const QUIET_LOOKS = 15;

const ADMIN: AdminPrincipal = { kind: 'admin', name: 'ada', expiresAt: null };
const userOf = (userId: string): UserPrincipal => ({
  kind: 'user',
  userId,
  scopes: new Set(['connect', 'invoke']),
  expiresAt: null,
});

/** A pause that somebody asked for. It must hold from its answer on, until somebody wants to end it. */
type Stop = {
  readonly says: string;
  /** Null: it covers the calls of all users. */
  readonly userId: string | null;
  readonly askedAt: number;
  /** When its answer arrived; Infinity: not yet, or with a part of the relays missing. */
  from: number;
  to: number;
  pauseId: string | null;
  /** The client that asked for it; null for a person at a relay. */
  readonly client: ClientProgram | null;
};

/** Returns members that cover all calls of a user, or of all users. */
function coverOf(random: () => number, userId: string | null): Partial<PauseRequest> {
  if (userId === null) return random() < 0.5 ? { all: true } : { action: ACTION };
  return pick(random, [{ userId }, { userId, clientId: CLIENT }, { userId, action: `${ACTION.slice(0, 2)}*` }]);
}

export class Pauses implements Workload {
  readonly #relays: Relays;
  readonly #network: LinkNetwork;
  readonly #doors = new Set<Door>();
  readonly #users: CallingUsers;
  #stops: Stop[] = [];
  /** For how many looks in a row nothing has been stopped. */
  #quietLooks = 0;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    const { simulation } = relays;
    const living = (): readonly Door[] => [...this.#doors].filter(({ process }) => !process.isDead);
    this.#network = new LinkNetwork(simulation, living);
    this.#network.onWritten = (text, relay) => this.#written(text, relay);
    this.#users = new CallingUsers({
      ...{ relays, network: this.#network },
      report: (fault) => relays.mayBeLost(0, simulation.now) || this.#report(fault),
    });
  }

  get acknowledged(): number {
    return this.#users.acknowledged;
  }

  get open(): number {
    return this.#users.open;
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    relay.process.onDeath = () => this.#network.relayDied(relay.process);
    const log = faultLog(this.#relays, relay.process, (fault) => this.#report(fault));
    this.#doors.add(await openEntry(relay, log));
  }

  onGone(_relay: Relay): void {}

  act(): void {
    this.#users.start();
    const call = this.#users.call(pick(this.#random, USERS));
    if (this.#stopOf(call)) this.#relays.count('call: asked for while it is stopped');
    if (this.#random() < PAUSING) this.#stop();
    if (this.#random() < RESUMING) this.#goOn();
    if (this.#random() < TROUBLING) this.#users.trouble([], () => {});
  }

  finish(): void {
    this.#users.start();
    this.#network.heal();
    for (const stop of this.#stops) stop.to = Math.min(stop.to, this.#relays.simulation.now);
    this.#endAll();
  }

  isDone(): boolean {
    return this.#quietLooks >= QUIET_LOOKS && this.open === 0;
  }

  judge(): Promise<readonly string[]> {
    return Promise.resolve(this.#users.judge());
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  // What people stop.

  #stop(): void {
    const { simulation, living } = this.#relays;
    const holding = this.#stops.filter(({ to }) => to > simulation.now);
    const relays = living.filter(({ core }) => core !== null);
    if (holding.length >= HOLDING || relays.length === 0) return;
    const userId = this.#random() < 0.25 ? null : pick(this.#random, USERS);
    if (userId !== null && this.#random() < 0.2) return this.#stopAtClient(userId);
    const relay = pick(this.#random, relays);
    const lasts = this.#random() < 0.2 ? between(this.#random, LASTING_MS.least, LASTING_MS.most) : null;
    const request: PauseRequest = {
      reason: 'simulated',
      ...coverOf(this.#random, userId),
      until: lasts === null ? null : relay.clock.now() + lasts,
      queued: this.#random() < 0.3 ? 'cancel' : 'keep',
      running: this.#random() < 0.3 ? 'cancel' : 'leave',
    };
    const to = lasts === null ? Infinity : simulation.now + lasts - CLOCKS_MS;
    const stop = this.#noteStop({ says: JSON.stringify(request), userId, to, client: null });
    const principal = userId === null || this.#random() < 0.5 ? ADMIN : userOf(userId);
    this.#relays.trace(`at ${relay.process.name} ${principal.kind} stops ${stop.says}`);
    relay.core?.pauses.pause(principal, request).then(
      ({ pause, partial, silent }) => {
        stop.pauseId = pause.pauseId;
        this.#relays.count(`pause: ${partial ? 'partial' : 'everywhere'}`);
        if (silent.length > 0) this.#relays.count('pause: named silent relays');
        // The answer leaves the process as any other one does.
        onRecord(relay, () => !partial && !relay.process.isDead && this.#holds(stop));
      },
      (error: unknown) => this.#relays.count(`pause: ${codeOf(error)}`),
    );
  }

  /** The person at a client says stop. */
  #stopAtClient(userId: string): void {
    const client = this.#users.clients.find((one) => one.userId === userId);
    if (!client?.isConnected) return;
    const stop = this.#noteStop({ says: `client of ${userId}`, userId, to: Infinity, client });
    this.#relays.trace(`the person at the client of ${userId} stops it`);
    client.pauseCalls('simulated').then(
      () => {
        this.#relays.count('pause: by the client');
        this.#holds(stop);
      },
      (error: unknown) => this.#relays.count(`pause by a client: ${String(error).slice(0, 60)}`),
    );
  }

  #noteStop(given: Pick<Stop, 'says' | 'userId' | 'to' | 'client'>): Stop {
    const stop: Stop = { ...given, askedAt: this.#relays.simulation.now, from: Infinity, pauseId: null };
    this.#stops.push(stop);
    return stop;
  }

  #holds(stop: Stop): void {
    const { now } = this.#relays.simulation;
    this.#relays.trace(`stopped: ${stop.says}`);
    if (now < stop.to) stop.from = now;
  }

  /** Somebody lets the calls of a pause go on. */
  #goOn(): void {
    const { simulation, living } = this.#relays;
    const holding = this.#stops.filter(({ from, to }) => from < Infinity && to > simulation.now);
    const relays = living.filter(({ core }) => core !== null);
    if (holding.length === 0 || relays.length === 0) return;
    const stop = pick(this.#random, holding);
    stop.to = simulation.now;
    this.#relays.trace(`goes on: ${stop.says}`);
    if (stop.client) return this.#goOnAtClient(stop.client);
    this.#resume(pick(this.#random, relays), stop.pauseId ?? '');
  }

  /** A client has one pause of its own, whatever its person has said before. */
  #goOnAtClient(client: ClientProgram): void {
    for (const stop of this.#stops)
      if (stop.client === client) stop.to = Math.min(stop.to, this.#relays.simulation.now);
    client
      .resumeCalls()
      .catch((error: unknown) => this.#relays.count(`resume by a client: ${String(error).slice(0, 60)}`));
  }

  #resume(relay: OpenRelay, pauseId: string): void {
    relay.core?.pauses.resume(ADMIN, pauseId).then(
      (receipt) => this.#relays.count(`resume: ${receipt ? (receipt.partial ? 'partial' : 'everywhere') : 'unknown'}`),
      (error: unknown) => this.#relays.count(`resume: ${codeOf(error)}`),
    );
  }

  /** Ends whatever is still stopped, again and again, until nothing has been for a while. */
  #endAll(): void {
    const { simulation, living } = this.#relays;
    simulation.after(LOOK_MS, 'looks at what is stopped', () => {
      if (!this.isDone()) this.#endAll();
    });
    const relays = living.filter(({ core }) => core !== null);
    if (relays.length === 0) return;
    const relay = pick(this.#random, relays);
    relay.core?.pauses.list(ADMIN, {}, { first: 100 }).then(
      ({ nodes, completeness }) => {
        this.#quietLooks = nodes.length === 0 && completeness.complete ? this.#quietLooks + 1 : 0;
        for (const { pauseId } of nodes) this.#resume(relay, pauseId);
      },
      () => (this.#quietLooks = 0),
    );
  }

  // What is judged.

  /** A relay has written this to a program. */
  #written(text: string, relay: string): void {
    const header: unknown = text.startsWith('{"type":"command"') ? JSON.parse(text.split('\n', 1)[0] ?? '') : null;
    const call = isRecord(header) ? this.#users.callOf(String(header['command_id'])) : undefined;
    if (!call) return;
    const stop = this.#stopOf(call);
    if (!stop) return;
    this.#fault(stop, `${relay} wrote ${call.commandId} of ${call.userId}, which is stopped: ${stop.says}`);
  }

  #fault({ askedAt, from }: Stop, says: string): void {
    const { now } = this.#relays.simulation;
    if (!this.#relays.mayBeLost(askedAt, now)) this.#report(`${says} since ${from}, at ${now}`);
  }

  /** Returns what stops a call now. */
  #stopOf({ userId }: Call): Stop | undefined {
    const { now } = this.#relays.simulation;
    return this.#stops.find((stop) => stop.from <= now && now < stop.to && (stop.userId ?? userId) === userId);
  }

  #report(fault: string): void {
    this.#relays.trace(fault);
    this.broken.push(fault);
  }
}

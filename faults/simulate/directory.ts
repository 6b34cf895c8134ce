/**
 * A simulated relay of direct mode, with a data directory on a simulated disk, and faults that the seed decides. A
 * workload gives it something to do.
 */
import { isTerminal } from '../../src/core/commands/command.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type { Core } from '../../src/core/core.ts';
import type { Clock } from '../../src/core/ports.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import type { DataSync } from '../../src/backends/journal/journal.ts';
import { openData, type DurableBackend } from '../../src/backends/journal/open.ts';
import { createCrypto, steadyClock } from '../../src/platform/system.ts';
import { between, pick } from '../lib/random.ts';
import type { DeploymentOptions } from './deployment.ts';
import { SimulatedDisk } from './disk.ts';
import type { Fault, FaultKind } from './plan.ts';
import { SimulatedProcess } from './process.ts';
import { codeOf, countingLog, type OpenRelay, type SimulatedDeployment } from './relays.ts';
import { differencesOf, type Differences } from './replayed.ts';
import { Simulation } from './virtual.ts';

const ROOT = '/data';
const DISK_BYTES = 256 * 1024 * 1024;
/** DATA_SYNC of a run. */
const SYNCS: readonly DataSync[] = ['always', 'off', 20, 100, 100, 1_000];
/** The cost of a journal at which a snapshot is due, in bytes: so little that most runs have some. */
const JOURNAL_COST = 200_000;
/** How long after a fault acts may still take long, in milliseconds: a start is tried again each second. */
const HEALED_MS = 8_000;
const START_AGAIN_MS = 1_000;
/** After how many operations of the disk a process ends in the middle of something, at most. */
const OPERATIONS = { start: 30, rotation: 16, any: 40 };
/** The part of the ends within a rotation after which the next start ends in the middle of something too. */
const AGAIN = 0.4;
/** How much longer a write or a sync takes on a slow disk, at most, in milliseconds. */
const SLOW_MS = 400;
/** How often others take what is free on a full disk, in milliseconds. */
const TAKEN_MS = 150;
/** How often they do, and how often of these times they give it back, if they do so again and again. */
const TAKEN = { times: 8, given: 2 };
/** How soon syncs fail once a relay is stopped, and how long its disk was full before, in milliseconds, at most. */
const SYNCS_FAIL_MS = 30;
const FULL_BEFORE_MS = 2_500;
/** How often the memory of the relay is compared with its directory, at most, in milliseconds. */
const COMPARED_MS = 6_000;
/** How often a comparison is put off because something is not recorded yet, and for how long, in milliseconds. */
const COMPARISONS = 200;
const PUT_OFF_MS = 3;
/** Within what time there is another snapshot after one has failed, in milliseconds. */
const SNAPSHOT_MS = 66_000;

/**
 * `kill` and `power`: at once. `crash` and `outage`: the same, in the middle of what is done with the disk. `sync` and
 * `write`: these operations fail, which ends the relay.
 */
export const DIRECTORY_FAULTS: readonly FaultKind[] = [
  ...['kill', 'crash', 'power', 'outage', 'pause', 'slow', 'full', 'sync', 'write', 'clock', 'leave'],
].map((name) => ({ name, isAlone: false }));
/** The faults that hold the relay or its disk up. */
const HOLDING_UP: ReadonlySet<string> = new Set(['pause', 'slow', 'full']);
/** How long two syncs with those of older files take at most, on a disk that is not slow, in milliseconds. */
const SYNCS_MS = 50;

type Node = {
  readonly process: SimulatedProcess;
  readonly clock: Clock;
  readonly shares: Shares;
  backend: DurableBackend | null;
  core: Core | null;
  leave: (() => Promise<void>) | null;
  /** Whether it is being closed. */
  isLeaving: boolean;
};
type OpenNode = Node & { readonly backend: DurableBackend };

/** What happened since the last relay was open. */
type Since = {
  hasLostPower: boolean;
  hasFailed: boolean;
  hasLostWrites: boolean;
  wasStarting: boolean;
  isClosed: boolean;
};

const NOTHING: Since = {
  ...{ hasLostPower: false, hasFailed: false, hasLostWrites: false, wasStarting: false, isClosed: false },
};

export class DirectoryDeployment implements SimulatedDeployment {
  readonly simulation: Simulation;
  readonly seen: Record<string, number> = {};
  calmFrom = 0;
  skewMs = 0;
  readonly #options: DeploymentOptions;
  readonly #disk: SimulatedDisk;
  readonly #sync: DataSync;
  /** How fast the clocks of the machine go, and how far its wall clock is ahead. */
  readonly #rate: number;
  #aheadMs: number;
  #node: Node | null = null;
  #started = 0;
  #isOver = false;
  /** From when on nothing held the relay or its disk up. */
  #smoothFrom = 0;
  #openedAt = 0;
  readonly #openings: number[] = [];
  #hasOpened = false;
  /** Whether a start has told of a loss and has not recorded yet which commands it gave up. */
  #isLossOpen = false;
  #since: Since = { ...NOTHING };
  readonly #losses: (readonly [from: number, to: number])[] = [];
  /** Whether the last comparison found each result in the directory. */
  #areResultsKept = true;
  /** When power was lost, or a sync failed: a start gives up then what has not ended, even if it is not completed. */
  readonly #givenUpAt: number[] = [];
  readonly #broken: string[] = [];

  constructor(options: DeploymentOptions) {
    this.#options = options;
    this.simulation = new Simulation(options.plan.seed);
    this.#disk = new SimulatedDisk(this.simulation, { bytes: DISK_BYTES });
    this.#disk.onLost = (path, since) => {
      this.trace(`a failed sync has lost something of what was written to ${path} since ${since}`);
      this.#noteLoss(isJournal(path) ? since : null);
      this.#since.hasLostWrites ||= isJournal(path);
    };
    this.#disk.onFailedSync = () => this.#noteFailure();
    this.#sync = pick(this.#random, SYNCS);
    this.#rate = 1 + (this.#random() - 0.5) / 100;
    this.#aheadMs = between(this.#random, -500, 500);
    this.count(`DATA_SYNC: ${this.#sync}`);
    this.#start();
  }

  get living(): readonly OpenNode[] {
    const node = this.#node;
    return node && isOpen(node) && !node.process.isDead && !node.isLeaving ? [node] : [];
  }

  hasKeptTime(from: number, to: number): boolean {
    return !this.#openings.some((at) => at >= from && at <= to);
  }

  mayBeLost(from: number, to: number): boolean {
    return this.#losses.some(([began, ended]) => from <= ended && to >= began);
  }

  mayBeGivenUp(since: number): boolean {
    return this.#givenUpAt.some((at) => at >= since);
  }

  isInOrder(): boolean {
    const [node] = this.living;
    return node !== undefined && !node.backend.durability().full;
  }

  state(): string {
    const [node] = this.living;
    return node ? `${node.process.name} is open: ${JSON.stringify(node.backend.durability())}` : 'no relay is open';
  }

  readonly trace = (line: string): void => {
    this.#options.trace?.(`${this.simulation.now} ${line}`);
  };

  readonly count = (what: string): void => {
    this.seen[what] = (this.seen[what] ?? 0) + 1;
  };

  beginFaults(): void {
    for (const fault of this.#options.plan.faults)
      this.simulation.after(fault.atMs, 'fault', () => {
        if (!this.#isOver) this.#fault(fault);
      });
    this.#compareLater();
  }

  heal(): void {
    this.#isOver = true;
    this.trace('all faults are over');
    this.#healDisk();
    this.#node?.process.resume();
    if (!this.#node) this.#start();
  }

  stop(): void {
    this.#node?.process.die();
  }

  async judge(): Promise<readonly string[]> {
    await this.simulation.run(COMPARISONS * PUT_OFF_MS, () => this.#isRecorded());
    if (!this.#isRecorded()) this.#broken.push('something was not recorded although nothing was wrong');
    await this.#compare();
    // Results for which there was no room are in the next snapshot.
    for (let left = SNAPSHOT_MS; left > 0 && !this.#areResultsKept; left -= COMPARED_MS) {
      await this.simulation.run(COMPARED_MS);
      await this.#compare();
    }
    if (!this.#areResultsKept) this.#broken.push('results were not recorded although there was room');
    return this.#broken;
  }

  get #random(): () => number {
    return this.simulation.random;
  }

  #start(): void {
    const name = `relay-${this.#started++}`;
    this.skewMs = Math.max(this.skewMs, Math.abs(this.#aheadMs));
    const process = new SimulatedProcess(this.simulation, name, { aheadMs: this.#aheadMs, rate: this.#rate });
    const made = { backend: null, core: null, leave: null, isLeaving: false };
    const node: Node = { process, clock: steadyClock(process.clock), shares: createShares(), ...made };
    this.#node = node;
    this.#open(node).catch((error: unknown) => {
      const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
      this.count(`start: ${codeOf(error)}${cause.slice(0, 60)}`);
      this.trace(`${name} did not start: ${String(error)}${cause}`);
      if (process.isDead) return;
      if (error instanceof Error && /damaged|is in use/.test(error.message))
        this.#broken.push(`${name} refused to start: ${error.message}${cause}`);
      this.#noteFailure();
      this.#end(node);
      this.#startLater(START_AGAIN_MS);
    });
  }

  #startLater(ms: number): void {
    this.simulation.after(ms, 'starts again', () => {
      if (!this.#node) this.#start();
    });
  }

  async #open(node: Node): Promise<void> {
    const { process, clock, shares } = node;
    this.trace(`${process.name} starts`);
    const { backend } = await openData({
      ...{ root: ROOT, sync: this.#sync, version: 'simulated', loop: process.loop, random: process.crypto },
      ...{ disk: this.#disk.of(process), journalCost: JOURNAL_COST },
      onFailure: (error) => {
        if (process.isDead) return;
        this.count(`failure: ${error.message}`);
        this.trace(`${process.name} ends: ${error.message}`);
        process.die();
        this.simulation.after(0, 'failed', () => {
          this.#noteFailure();
          this.#end(node);
          this.#startLater(START_AGAIN_MS);
        });
      },
      memory: {
        clock,
        log: countingLog(this, process),
        sha256: createCrypto('simulation').sha256,
        shares,
      },
    });
    if (process.isDead) return;
    const { away } = backend.durability();
    this.trace(`${process.name} is open: ${JSON.stringify(away)}`);
    await this.#judgeStart(process.name, backend);
    node.backend = backend;
    await this.#options.onOpened(node as OpenRelay);
  }

  /** Judges what a start says of the time before. */
  async #judgeStart(name: string, { durability, inspector, onRecord }: DurableBackend): Promise<void> {
    const { away } = durability();
    const { hasLostPower, hasFailed, hasLostWrites, wasStarting, isClosed } = this.#since;
    const mayHaveLost = (hasLostWrites || hasLostPower) && !isClosed && this.#sync !== 'always';
    // A start that was not completed may have ended all commands, which is in their histories.
    const { rows } = await inspector.list(ANY_COMMAND, { first: 1000, after: null });
    const running = rows.filter(({ row }) => !isTerminal(row)).length;
    const wrong = (what: string): void => void this.#broken.push(`${name} ${what}: ${JSON.stringify(away)}`);
    if (this.#hasOpened && !away) wrong('knows nothing of before');
    // A start that was not completed may have written already, and was not closed.
    if (away && isClosed && !wasStarting && (away.lost || !(away.clean || hasFailed)))
      wrong('does not know that the one before was closed');
    if (away && mayHaveLost && !away.lost && !away.clean && (!wasStarting || running > 0))
      wrong('does not tell of the loss');
    const mayTell = this.#isLossOpen || ((hasLostPower || hasFailed) && this.#sync !== 'always');
    if (away?.lost && !mayTell) wrong('tells of a loss that was none');
    // Until what follows of it is recorded, the next start tells of the loss again.
    this.#isLossOpen = away?.lost === true;
    if (this.#isLossOpen) onRecord?.(() => (this.#isLossOpen = false));
    // It has given up what had not ended, whatever the fault was during which the loss was noted.
    if (away?.lost) this.#givenUpAt.push(this.simulation.now);
    if (away) this.count(`away: ${away.clean ? 'clean' : away.lost ? 'lost' : 'ended'}`);
    this.#hasOpened = true;
    this.#openedAt = this.simulation.now;
    this.#openings.push(this.#openedAt);
    this.#since = { ...NOTHING };
  }

  /** Notes that what was recorded since a time may be lost. With `always`, nothing of it was acknowledged. */
  #noteLoss(since: number | null): void {
    if (since !== null && this.#sync !== 'always') this.#losses.push([since, this.simulation.now]);
  }

  #noteFailure(): void {
    this.#since.hasFailed = true;
    this.#givenUpAt.push(this.simulation.now);
  }

  // Faults.

  #fault({ kind, forMs, part }: Fault): void {
    this.calmFrom = Math.max(this.calmFrom, this.simulation.now + forMs + HEALED_MS);
    const node = this.#node;
    this.count(`fault: ${kind}`);
    this.simulation.note(`${kind} ${node?.process.name ?? 'nobody'} ${forMs}`);
    this.trace(`${kind} ${node?.process.name ?? 'nobody'} for ${forMs} ms`);
    const later = (run: () => void): void => void this.simulation.after(forMs, 'fault ends', run);
    if (HOLDING_UP.has(kind)) this.#smoothFrom = Math.max(this.#smoothFrom, this.simulation.now + forMs + SLOW_MS);
    switch (kind) {
      case 'kill':
      case 'power':
        return this.#crash(node, { kind, forMs });
      case 'crash':
      case 'outage':
        return this.#crashInside(node, { kind: kind === 'crash' ? 'kill' : 'power', forMs, part });
      case 'pause':
        node?.process.pause();
        return later(() => node?.process.resume());
      case 'slow':
        this.#disk.slowMs = Math.ceil(SLOW_MS * part);
        return later(() => (this.#disk.slowMs = 0));
      case 'full':
        return this.#fill(forMs, part);
      case 'sync':
      case 'write': {
        const fails = (): void => this.#failOperations(kind, forMs);
        // At once, or within the next rotation.
        if (part < 0.5) return fails();
        return this.#disk.afterOperations(Math.floor(OPERATIONS.rotation * (2 * part - 1)), fails, 'creation');
      }
      case 'clock': {
        const ms = Math.round((part - 0.5) * 10_000);
        this.#aheadMs += ms;
        return node?.process.stepClock(ms);
      }
      case 'leave':
        return this.#leaveIn(part, forMs);
      default:
        throw new Error(`no such fault: ${kind}`);
    }
  }

  /** The process, or the machine, ends at once. */
  #crash(node: Node | null, { kind, forMs }: { readonly kind: 'kill' | 'power'; readonly forMs: number }): void {
    if (kind === 'power') this.#losePower();
    if (node) this.#end(node);
    this.#startLater(forMs);
  }

  /** The process, or the machine, ends within an operation of the disk: one of a start, of a rotation, or any. */
  #crashInside(
    node: Node | null,
    { kind, forMs, part }: { readonly kind: 'kill' | 'power'; readonly forMs: number; readonly part: number },
  ): void {
    const where = pick(this.#random, ['start', 'rotation', 'any'] as const);
    const operations = Math.floor(OPERATIONS[where] * part);
    const crash = (): void => {
      const inside = this.#node;
      this.trace(`${kind} within an operation of ${inside?.process.name}`);
      this.count(`${kind} within ${inside?.backend ? 'an operation' : 'a start'}`);
      inside?.process.die();
      const isRepeated = where === 'rotation' && inside?.backend && this.#random() < AGAIN;
      this.simulation.after(0, 'crashed', () => {
        this.#crash(inside, { kind, forMs });
        if (isRepeated) this.#disk.afterOperations(between(this.#random, 0, OPERATIONS.start), crash);
      });
    };
    // What the start finds decides what it does.
    if (node && where === 'start') this.#crash(node, { kind: this.#random() < 0.5 ? 'kill' : 'power', forMs: 1 });
    this.#disk.afterOperations(operations, crash, where === 'rotation' ? 'creation' : 'now');
  }

  #losePower(): void {
    const { now } = this.simulation;
    const since = this.#disk.unsyncedSince(isJournal);
    // On a disk that is not slow, for a process that is not held up.
    const isSmooth = since !== null && this.#node?.backend && since > Math.max(this.#smoothFrom, this.#openedAt);
    if (typeof this.#sync === 'number' && isSmooth) {
      if (now - since > this.#sync + SYNCS_MS)
        this.#broken.push(`what was written at ${since} was not synced at ${now}`);
      this.count('loss of power: DATA_SYNC was kept');
    }
    this.#noteLoss(since);
    this.trace(`power is lost: unsynced since ${since}`);
    this.#disk.losePower();
    this.#since.hasLostPower = true;
    this.#givenUpAt.push(now);
  }

  /** All syncs, or all writes, fail from now on. */
  #failOperations(kind: 'sync' | 'write', forMs: number): void {
    if (this.#isOver) return;
    this.calmFrom = Math.max(this.calmFrom, this.simulation.now + forMs + HEALED_MS);
    this.#disk.fault = kind;
    this.simulation.after(forMs, 'fault ends', () => (this.#disk.fault = null));
  }

  /** Others fill the disk. Sometimes they take at once what is given up, or give it back now and then. */
  #fill(forMs: number, part: number): void {
    const [left, takes, gives] = [Math.floor((1 - part) * 12) * 1024 * 1024, part > 0.5, part > 0.75];
    const until = this.simulation.now + forMs;
    let times = 0;
    const take = (): void => {
      if (this.#isOver || this.simulation.now >= until) return this.#disk.leave(Infinity);
      const isGiven = gives && times++ % TAKEN.times >= TAKEN.times - TAKEN.given;
      this.#disk.leave(isGiven ? Infinity : takes ? Math.min(left, this.#disk.free) : left);
      this.simulation.after(takes ? TAKEN_MS : forMs, 'others write', take);
    };
    take();
  }

  /** The relay is stopped: at once, within a rotation, while syncs begin to fail, or after its disk was full. */
  #leaveIn(part: number, forMs: number): void {
    const leave = (): void => {
      if (!this.#isOver) this.#leave(this.#node, forMs);
    };
    if (part < 0.25) return leave();
    if (part < 0.5) {
      const operations = Math.floor(OPERATIONS.rotation * (4 * part - 1));
      const leaves = (): void => void this.simulation.after(0, 'leaves', leave);
      return this.#disk.afterOperations(operations, leaves, 'creation');
    }
    if (part < 0.75) {
      const fails = (): void => this.#failOperations('sync', SYNCS_FAIL_MS);
      this.simulation.after(between(this.#random, 0, SYNCS_FAIL_MS), 'syncs fail', fails);
      return leave();
    }
    const fullMs = between(this.#random, FULL_BEFORE_MS / 2, FULL_BEFORE_MS);
    this.calmFrom = Math.max(this.calmFrom, this.simulation.now + fullMs + forMs + HEALED_MS);
    this.#smoothFrom = Math.max(this.#smoothFrom, this.simulation.now + fullMs + SLOW_MS);
    this.#fill(FULL_BEFORE_MS / 2, 1);
    this.simulation.after(fullMs, 'leaves', leave);
  }

  /** The relay is stopped in order, and killed if that takes too long. */
  #leave(node: Node | null, forMs: number): void {
    if (!node || !isOpen(node) || node.process.isDead || node.isLeaving) return;
    node.isLeaving = true;
    this.#options.onGone(node);
    const close = async (): Promise<void> => {
      await (node.leave ? node.leave() : node.core?.close());
      await node.backend.close();
    };
    let isClosed = false;
    const ended = (): void => {
      if (this.#node !== node) return;
      this.#end(node);
      this.#since.isClosed = isClosed;
      this.#startLater(START_AGAIN_MS);
    };
    close().then(
      () => {
        isClosed = !node.process.isDead;
        this.simulation.after(0, 'closed', ended);
      },
      (error: unknown) => {
        // A process whose stop fails ends, as `main` does.
        this.count(`leave: ${codeOf(error)}`);
        this.simulation.after(0, 'failed to close', ended);
      },
    );
    this.simulation.after(forMs, 'is killed', ended);
  }

  /** The relay ends, whatever it does. */
  #end(node: Node): void {
    node.process.die();
    if (this.#node !== node) return;
    this.#node = null;
    this.#since.wasStarting ||= node.backend === null;
    this.trace(`${node.process.name} has ended`);
    if (!node.isLeaving) this.#options.onGone(node);
  }

  #healDisk(): void {
    Object.assign(this.#disk, { slowMs: 0, fault: null });
    this.#disk.leave(Infinity);
    this.#disk.afterOperations(Infinity, () => {});
  }

  // Compares the memory of the relay with its directory.

  #compareLater(): void {
    this.simulation.after(between(this.#random, 1, COMPARED_MS), 'compares', () => {
      if (this.#isOver) return;
      this.#compareSoon(COMPARISONS);
      this.#compareLater();
    });
  }

  /** Compares once everything is recorded, or gives up. */
  #compareSoon(tries: number): void {
    if (this.#isRecorded()) return void this.#compare();
    if (tries > 0 && this.living.length > 0)
      this.simulation.after(PUT_OFF_MS, 'compares again', () => this.#compareSoon(tries - 1));
  }

  /** Whether everything that the relay has decided is in its directory. */
  #isRecorded(): boolean {
    const [node] = this.living;
    let isRecorded = false;
    if (!node?.backend.durability().full) node?.backend.onRecord?.(() => (isRecorded = true));
    return isRecorded;
  }

  async #compare(): Promise<void> {
    const [node] = this.living;
    if (!node) return;
    this.count('compared with the directory');
    const { process, clock, shares, backend } = node;
    const disk = this.#disk.copy().of(null);
    const found = await differencesOf({ backend, shares, clock }, { root: ROOT, disk }).catch(
      (error: Error): Differences => ({ results: [], others: [`${error.message} (${String(error.cause)})`] }),
    );
    if (found.results.length > 0) this.count('results that are not recorded yet');
    this.#areResultsKept = found.results.length === 0;
    const lines = found.others.map((what) => `${this.simulation.now} ${process.name} is not what it recorded: ${what}`);
    this.#broken.push(...lines);
  }
}

function isOpen(node: Node): node is OpenNode {
  return node.backend !== null;
}

function isJournal(path: string): boolean {
  return path.startsWith(`${ROOT}/journal-`);
}

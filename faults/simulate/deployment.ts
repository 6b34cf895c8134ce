/**
 * A simulated deployment of relays that own partitions: processes and their log service, with faults that the seed
 * decides. A workload gives the relays something to do.
 */
import type { Backend } from '../../src/core/backend.ts';
import type { Core } from '../../src/core/core.ts';
import type { Clock } from '../../src/core/ports.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { openOwned, type OwnedBackend } from '../../src/backends/owned/open.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { between } from '../lib/random.ts';
import { addressOf } from './link-network.ts';
import { LogNetwork } from './log-network.ts';
import { LogService } from './log-service.ts';
import type { Fault, FaultKind, Plan } from './plan.ts';
import { SimulatedProcess, START } from './process.ts';
import { codeOf, countingLog, type OpenRelay, type Relay, type SimulatedDeployment } from './relays.ts';
import { SnapshotJudge } from './snapshots.ts';
import { FenceJudge } from './unfenced.ts';
import { Simulation } from './virtual.ts';

/** The faults of relays that own partitions, and of what they agree through. */
export const OWNED_FAULTS: readonly FaultKind[] = [
  ...['kill', 'kill all', 'pause', 'closed', 'silent', 'flaky', 'stop', 'slow', 'clock', 'leave', 'full'].map(
    (name) => ({
      name,
      isAlone: false,
    }),
  ),
  // They lose what was recorded last, which only living owners can append again.
  { name: 'failover', isAlone: true },
  { name: 'loss', isAlone: true },
];
/** The number of partitions, without that of the audit, and of slot groups. */
const PARTITIONS = 4;
const GROUPS = 2;
/** The cost of a log at which a snapshot is due, in bytes: so little that most runs have some. */
const SNAPSHOT_COST = 200_000;
/** The part of the deployments whose relays have addresses of their own. In the others partitions move to their links. */
const WITH_ADDRESSES = 0.5;
/** How old the state of a replica is at a failover, in milliseconds. */
const BEHIND_MS = 400;
/** How far the clock of a machine is ahead or behind at most, in milliseconds, if nobody steps it. */
const CLOCK_MS = 500;
/** Within what time the partitions of a dead relay have another owner, in milliseconds. */
const TAKEN_OVER_MS = 10_000;
/** How long after a fault acts may still take long, in milliseconds. */
const HEALED_MS = 6_000;
/** How much later others take what a dead relay owned, if Redis has lost something of it: they wait for two leases. */
const CUT_MS = 5_000;

/** A relay. `opened`: what it owns; null while it starts. */
type Node = {
  readonly process: SimulatedProcess;
  readonly shares: Shares;
  clock: Clock | null;
  opened: OwnedBackend | null;
  backend: Backend | null;
  core: Core | null;
  leave: (() => Promise<void>) | null;
};
type LivingNode = Node & { readonly clock: Clock; readonly opened: OwnedBackend; readonly backend: Backend };

export type DeploymentOptions = {
  readonly plan: Plan;
  /** Called with a line about each act and each fault. Absent: no line is made. */
  readonly trace?: ((line: string) => void) | undefined;
  /** Called when a relay has opened its backend, and when it is gone. */
  readonly onOpened: (relay: OpenRelay) => Promise<void> | void;
  readonly onGone: (relay: Relay) => void;
};

export class Deployment implements SimulatedDeployment {
  readonly simulation: Simulation;
  readonly #network: LogNetwork;
  readonly #options: DeploymentOptions;
  readonly #nodes: Node[] = [];
  /** How often each fault, and each answer of an act, occurred. */
  readonly seen: Record<string, number> = {};
  calmFrom = 0;
  readonly skewMs = CLOCK_MS;
  readonly #snapshots: SnapshotJudge;
  readonly #fences: FenceJudge;
  /** Whether programs reach each relay at an address of its own, besides the load balancer. */
  readonly #haveAddresses: boolean;
  #started = 0;
  #isOver = false;
  /** From when to when what was acknowledged may be lost, in milliseconds. */
  readonly #losses: (readonly [from: number, to: number])[] = [];

  constructor(options: DeploymentOptions) {
    this.#options = options;
    this.simulation = new Simulation(options.plan.seed);
    this.#haveAddresses = this.#random() < WITH_ADDRESSES;
    if (this.#haveAddresses) this.count('relays have addresses');
    this.#snapshots = new SnapshotJudge(() => START + this.simulation.now);
    this.#fences = new FenceJudge(() => this.simulation.now);
    const service = new LogService(() => this.simulation.now);
    this.#network = new LogNetwork(this.simulation, service);
    service.onSnapshot = (replaced) => {
      this.count('snapshot');
      this.#snapshots.note(replaced);
    };
    for (let n = 0; n < options.plan.nodes; n++) this.#start();
  }

  mayBeLost(from: number, to: number): boolean {
    return this.#losses.some(([began, ended]) => from <= ended && to >= began);
  }

  mayBeGivenUp(since: number): boolean {
    return this.#losses.some(([, ended]) => ended + TAKEN_OVER_MS >= since);
  }

  hasKeptTime(): boolean {
    return true;
  }

  /** Judges the deployment itself, once everything is in order. */
  async judge(): Promise<readonly string[]> {
    return [...(await this.#snapshots.judge()), ...this.#fences.judge()];
  }

  get living(): readonly LivingNode[] {
    return this.#nodes.filter((node): node is LivingNode => node.opened !== null && !node.process.isDead);
  }

  /** Whether each partition has one owner, and every process knows it. */
  isInOrder(): boolean {
    const { living } = this;
    if (living.length === 0 || living.length < this.#nodes.length) return false;
    for (let partition = 0; partition <= PARTITIONS; partition++) {
      const owners = living.filter(({ opened }) => opened.owners.local(partition));
      const [owner] = owners;
      if (!owner || owners.length > 1) return false;
      if (living.some(({ opened }) => opened.owners.ownerOf(partition)?.nodeId !== owner.process.name)) return false;
    }
    return true;
  }

  /** Says who owns what, for people. */
  state(): string {
    const lines = this.living.map(({ process, opened }) => {
      const owned = opened.owners.owned.map(({ number }) => number).join(',');
      return `${process.name} owns ${owned}, ${opened.owners.orphans} orphans`;
    });
    return [`${this.#nodes.length} nodes`, ...lines].join('; ');
  }

  readonly trace = (line: string): void => {
    this.#options.trace?.(`${this.simulation.now} ${line}`);
  };

  readonly count = (what: string): void => {
    this.seen[what] = (this.seen[what] ?? 0) + 1;
  };

  /** The faults of the plan begin at their times from now on. */
  beginFaults(): void {
    for (const fault of this.#options.plan.faults)
      this.simulation.after(fault.atMs, 'fault', () => {
        if (!this.#isOver) this.#fault(fault);
      });
  }

  /** Ends all faults. Relays that are gone are started again. */
  heal(): void {
    this.#isOver = true;
    this.trace('all faults are over');
    this.#network.slowMs = 0;
    this.#network.service.isFull = false;
    this.#network.start();
    for (const { process } of this.#nodes) {
      this.#network.setFault(process, null);
      process.resume();
    }
    while (this.#nodes.length < this.#options.plan.nodes) this.#start();
  }

  stop(): void {
    for (const { opened } of this.#nodes) opened?.owners.stop();
  }

  get #random(): () => number {
    return this.simulation.random;
  }

  #start(): void {
    const nodeId = `node-${this.#started++}`;
    const drift = { aheadMs: between(this.#random, -CLOCK_MS, CLOCK_MS), rate: 1 + (this.#random() - 0.5) / 100 };
    const process = new SimulatedProcess(this.simulation, nodeId, drift);
    const made = { clock: null, opened: null, backend: null, core: null, leave: null };
    const node: Node = { process, shares: createShares(), ...made };
    this.#nodes.push(node);
    this.#open(node).catch((error: unknown) => {
      // A start needs the log service.
      this.count(`start: ${codeOf(error)}`);
      const again = (): void => {
        this.#end(node);
        this.#start();
      };
      if (process.isDead) return;
      if (this.#isOver) again();
      else process.after(1_000, 'starts again', again);
    });
  }

  async #open(node: Node): Promise<void> {
    const { process, shares } = node;
    const { clock: system, loop, crypto } = process;
    const log = countingLog(this, process);
    const clock = await this.#network.clockOf(process, log);
    const { sha256 } = createCrypto('simulation');
    const opened = await openOwned({
      connect: () => this.#network.connect(process),
      ...{
        nodeId: process.name,
        system,
        clock,
        loop,
        random: crypto,
        log: this.#fences.watching(log, process.name),
        version: 'simulated',
      },
      ...{
        namespace: 'simulation',
        address: this.#haveAddresses ? addressOf(process.name) : null,
        partitions: PARTITIONS,
        groups: GROUPS,
        digest: 'd',
        claims: true,
        recordRoom: { dueCost: SNAPSHOT_COST },
      },
      scopeOf: (userId) => userId,
      memory: { sha256, markSecret: 'x', shares },
    });
    const { backend } = opened;
    Object.assign(node, { clock, opened, backend });
    await this.#options.onOpened(Object.assign(node, { clock, backend }));
  }

  // Faults.

  #fault({ kind, node: number, forMs: ms, part }: Fault): void {
    const node = this.#nodes[number % Math.max(1, this.#nodes.length)];
    // All relays are gone.
    if (!node) return;
    const healedMs = kind === 'loss' || kind === 'failover' ? HEALED_MS + CUT_MS : HEALED_MS;
    this.calmFrom = Math.max(this.calmFrom, this.simulation.now + ms + healedMs);
    this.count(`fault: ${kind}`);
    this.simulation.note(`${kind} ${node.process.name} ${ms}`);
    this.#fences.noteFault(kind, node.process.name, ms);
    this.trace(`${kind} ${node.process.name} for ${ms} ms`);
    const later = (run: () => void): void => void this.simulation.after(ms, 'fault ends', run);
    switch (kind) {
      case 'kill':
        this.#end(node);
        return later(() => this.#isOver || this.#start());
      case 'kill all': {
        const all = [...this.#nodes];
        for (const one of all) this.#end(one);
        return later(() => {
          if (!this.#isOver) for (const _ of all) this.#start();
        });
      }
      case 'leave':
        if (this.living.length < 2 || !node.opened) return;
        this.#leave(node, node.opened);
        return later(() => {
          node.process.die();
          if (!this.#isOver) this.#start();
        });
      case 'pause':
        node.process.pause();
        return later(() => node.process.resume());
      case 'closed':
      case 'silent':
      case 'flaky':
        this.#network.setFault(node.process, kind);
        return later(() => this.#network.setFault(node.process, null));
      case 'stop':
        this.#network.stop();
        return later(() => this.#network.start());
      case 'slow':
        this.#network.slowMs = 1 + 300 * part;
        return later(() => (this.#network.slowMs = 0));
      case 'full':
        this.#network.service.isFull = true;
        return later(() => (this.#network.service.isFull = false));
      case 'failover':
        return this.#failOver(BEHIND_MS * part, null);
      case 'loss':
        this.#failOver(BEHIND_MS * part, node);
        return later(() => this.#isOver || this.#start());
      case 'clock':
        return node.process.stepClock(Math.round((part - 0.5) * 10_000));
      default:
        throw new Error(`no such fault: ${kind}`);
    }
  }

  /**
   * The log service goes on with the state of a replica that is behind. `dead`: a relay that dies with it, so that
   * nobody appends again what it had recorded meanwhile.
   */
  #failOver(behindMs: number, dead: Node | null): void {
    const replica = this.#network.service.copy();
    const from = this.simulation.now;
    this.simulation.after(behindMs, 'failover', () => {
      if (this.#isOver) return;
      if (dead) this.#losses.push([from, this.simulation.now]);
      if (dead && this.#nodes.includes(dead)) this.#end(dead);
      this.#network.failOver(replica, between(this.#random, -CLOCK_MS, CLOCK_MS));
      this.#snapshots.noteLoss();
    });
  }

  /** A relay ends in order: it gives its partitions away. */
  #leave(node: Node, { backend }: OwnedBackend): void {
    this.#nodes.splice(this.#nodes.indexOf(node), 1);
    this.#options.onGone(node);
    const closed = node.leave ? node.leave().then(() => backend.close()) : backend.close();
    Promise.resolve(closed).catch((error: unknown) => this.count(`leave: ${codeOf(error)}`));
  }

  /** A relay ends at once. */
  #end(node: Node): void {
    node.process.die();
    this.#network.setFault(node.process, 'closed');
    this.#nodes.splice(this.#nodes.indexOf(node), 1);
    this.#options.onGone(node);
  }
}

/**
 * A simulated deployment of relays that own partitions: processes and their log service, with faults that the seed
 * decides. A workload gives the relays something to do.
 */
import type { Backend } from '../../src/core/backend.ts';
import type { Core } from '../../src/core/core.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { openOwned, type OwnedBackend } from '../../src/backends/owned/open.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { between, pick } from '../lib/random.ts';
import { LogNetwork } from './log-network.ts';
import { LogService } from './log-service.ts';
import { SimulatedProcess } from './process.ts';
import { codeOf, type OpenRelay, type Relay, type SimulatedDeployment } from './relays.ts';
import { Simulation } from './virtual.ts';

/** The number of partitions, without that of the audit, and of slot groups. */
const PARTITIONS = 4;
const GROUPS = 2;
/** How long a fault lasts at most, and how long none begins after one, in milliseconds. */
const FAULT_MS = 9_000;
const QUIET_MS = 4_000;
/** How old the state of a replica is at a failover, in milliseconds. */
const BEHIND_MS = 400;
/** How long after a fault and its quiet time acts may still take long, in milliseconds. */
const HEALED_MS = 2_000;

/** A relay. `opened`: what it owns; null while it starts. */
type Node = {
  readonly process: SimulatedProcess;
  readonly shares: Shares;
  opened: OwnedBackend | null;
  backend: Backend | null;
  core: Core | null;
};
type LivingNode = Node & { readonly opened: OwnedBackend; readonly backend: Backend };

export type DeploymentOptions = {
  readonly seed: number;
  readonly nodes: number;
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
  /** From when on nothing should be wrong, until the next fault moves it. */
  calmFrom = 0;
  #started = 0;
  #isOver = false;
  #faultUntil = 0;

  constructor(options: DeploymentOptions) {
    this.#options = options;
    this.simulation = new Simulation(options.seed);
    this.#network = new LogNetwork(this.simulation, new LogService(() => this.simulation.now));
    for (let n = 0; n < options.nodes; n++) this.#start();
  }

  get living(): readonly LivingNode[] {
    return this.#nodes.filter((node): node is LivingNode => node.opened !== null && !node.process.isDead);
  }

  mayBeLost(): boolean {
    return false;
  }

  mayBeGivenUp(): boolean {
    return false;
  }

  /** Judges the deployment itself, once everything is in order. */
  async judge(): Promise<readonly string[]> {
    return [];
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

  trace(line: string): void {
    this.#options.trace?.(`${this.simulation.now} ${line}`);
  }

  count(what: string): void {
    this.seen[what] = (this.seen[what] ?? 0) + 1;
  }

  /** Faults begin at random times from now on. */
  beginFaults(): void {
    this.simulation.after(between(this.#random, QUIET_MS / 4, QUIET_MS * 2), 'fault', () => {
      if (this.#isOver) return;
      this.#fault();
      this.beginFaults();
    });
  }

  /** Ends all faults. Relays that are gone are started again. */
  heal(): void {
    this.#isOver = true;
    this.trace('all faults are over');
    this.#network.slowMs = 0;
    this.#network.start();
    for (const { process } of this.#nodes) {
      this.#network.setFault(process, null);
      process.resume();
    }
    while (this.#nodes.length < this.#options.nodes) this.#start();
  }

  stop(): void {
    for (const { opened } of this.#nodes) opened?.owners.stop();
  }

  get #random(): () => number {
    return this.simulation.random;
  }

  #start(): void {
    const nodeId = `node-${this.#started++}`;
    const drift = { aheadMs: between(this.#random, -500, 500), rate: 1 + (this.#random() - 0.5) / 100 };
    const process = new SimulatedProcess(this.simulation, nodeId, drift);
    const node: Node = { process, shares: createShares(), opened: null, backend: null, core: null };
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
    const { clock, loop, crypto } = process;
    const { sha256 } = createCrypto('simulation');
    const opened = await openOwned({
      connect: () => this.#network.connect(process),
      ...{ nodeId: process.name, system: clock, clock, loop, random: crypto, log: silentLog, version: 'simulated' },
      ...{ namespace: 'simulation', partitions: PARTITIONS, groups: GROUPS, digest: 'd', claims: true },
      scopeOf: (userId) => userId,
      memory: { sha256, markSecret: 'x', shares },
    });
    const { backend } = Object.assign(node, { opened, backend: opened.backend });
    await this.#options.onOpened(Object.assign(node, { backend }));
  }

  // Faults.

  #fault(): void {
    if (this.simulation.now < this.#faultUntil) return;
    const ms = between(this.#random, 100, FAULT_MS);
    this.#faultUntil = this.simulation.now + ms + QUIET_MS;
    this.calmFrom = this.#faultUntil + HEALED_MS;
    const node = pick(this.#random, this.#nodes);
    const kind = pick(this.#random, [
      'kill',
      'pause',
      'closed',
      'silent',
      'stop',
      'slow',
      'failover',
      'clock',
      'leave',
    ] as const);
    this.count(`fault: ${kind}`);
    this.simulation.note(`${kind} ${node.process.name} ${ms}`);
    this.trace(`${kind} ${node.process.name} for ${ms} ms`);
    const later = (run: () => void): void => void this.simulation.after(ms, 'fault ends', run);
    switch (kind) {
      case 'kill':
        this.#end(node);
        return later(() => this.#isOver || this.#start());
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
        this.#network.setFault(node.process, kind);
        return later(() => this.#network.setFault(node.process, null));
      case 'stop':
        this.#network.stop();
        return later(() => this.#network.start());
      case 'slow':
        this.#network.slowMs = between(this.#random, 1, 300);
        return later(() => (this.#network.slowMs = 0));
      case 'failover': {
        const replica = this.#network.service.copy();
        this.simulation.after(between(this.#random, 0, BEHIND_MS), 'failover', () => {
          if (!this.#isOver) this.#network.failOver(replica);
        });
        return;
      }
      case 'clock':
        return node.process.stepClock(between(this.#random, -5_000, 5_000));
    }
  }

  /** A relay ends in order: it gives its partitions away. */
  #leave(node: Node, { backend }: OwnedBackend): void {
    this.#nodes.splice(this.#nodes.indexOf(node), 1);
    this.#options.onGone(node);
    const closed = node.core ? node.core.close().then(() => backend.close()) : backend.close();
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

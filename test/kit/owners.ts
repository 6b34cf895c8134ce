/** Processes of a test that own partitions over one Redis: they claim, move and lose them as relays do. */
import { createBudget } from '../../src/backends/owned/budget.ts';
import { Keys } from '../../src/backends/owned/keys.ts';
import { Lease } from '../../src/backends/owned/lease.ts';
import { Owners } from '../../src/backends/owned/owner.ts';
import { Replicas } from '../../src/backends/owned/replicas.ts';
import { Turns } from '../../src/backends/owned/turns.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import type { Log } from '../../src/core/ports.ts';
import { shareBounds, type GivenBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { settle, type FakeClock } from './clock.ts';
import { connectCommands } from './redis.ts';

/** The lease of the processes, by the clock of the test. Redis ends none of them by itself. */
export const LEASE_MS = 60_000;

export type OwnerProcess = {
  readonly id: string;
  readonly owners: Owners;
  readonly turns: Turns;
  readonly shares: Shares;
  readonly client: Client;
  readonly replicas: Replicas;
  /** What happened: a partition that was lost, or a process that is gone. */
  readonly events: string[];
  /** When it was told that others may have counted it as dead. */
  readonly revivals: number[];
  /** Lets the process die: it does nothing more, and its lease ends. */
  die(): Promise<void>;
};

export type DeploymentOptions = {
  readonly clock: FakeClock;
  readonly namespace: string;
  readonly partitions: number;
  readonly log: Log;
  /** The bounds of the shares of each process; absent: the defaults. */
  readonly bounds?: GivenBounds;
  /** How long a change of owners waits for replicas, in milliseconds. Absent: as in a relay. */
  readonly waitMs?: number | undefined;
  /** Makes connections; absent: to one Redis. */
  readonly connect?: (url: string) => Client;
};

/** How often it is looked whether Redis has answered. A process whose connection is broken may never get an answer. */
const ANSWER_LOOKS = 50;

/** Returns how many commands of a client Redis has not answered. */
function openCommands(client: Client): number {
  const queue: unknown = Reflect.get(client, 'commandQueue');
  return typeof queue === 'object' && queue !== null ? Number(Reflect.get(queue, 'length')) : 0;
}

/** Starts processes that send each other notes, which a test may lose. */
export class OwnerDeployment {
  readonly keys: Keys;
  readonly #options: DeploymentOptions;
  readonly #processes = new Map<string, OwnerProcess>();
  /** Whether notes between processes arrive. */
  arrives = true;
  /** Called with each note that is sent. */
  onNote: (text: string) => void = () => {};

  constructor(options: DeploymentOptions) {
    this.#options = options;
    const { namespace, partitions } = options;
    this.keys = new Keys(namespace, { partitions, groups: 2, digest: 'd' });
  }

  /** `claims`: whether the process may own partitions. */
  async start(id: string, url: string, claims = true): Promise<OwnerProcess> {
    const { clock, log, partitions } = this.#options;
    const { keys } = this;
    const connect = (): Client => this.#connect(url);
    const client = connect();
    await client.connect();
    const events: string[] = [];
    const revivals: number[] = [];
    const turns = new Turns({ client, keys, loop: systemLoop, log, clock: { ...systemClock, now: () => clock.now() } });
    const lease = new Lease({ process: id, client, keys, clock, leaseMs: LEASE_MS, partitions, claims });
    const { sha256 } = createCrypto('test');
    const shares = createShares(shareBounds(this.#options.bounds));
    const { evidence, hasRoom } = createBudget(shares);
    const { total } = shares.bounds.history_bytes;
    const history = total === null ? {} : { bytes: total };
    const replicas = new Replicas({ client, connect, clock, log, waitMs: this.#options.waitMs });
    const owners = new Owners({
      ...{ process: id, client, keys, turns, clock, log, lease, partitions },
      ...{ leaseMs: LEASE_MS, replicas, version: 'test', loop: systemLoop },
      claims,
      memory: () => ({ clock, log, sha256, markSecret: 'x', shares, evidence, history }),
      send: (to, text) => this.#deliver(id, to, text),
      hasRoom,
      onJoined() {},
      onAddress() {},
      onLinksLost() {},
      onGone: (process) => events.push(`gone ${process}`),
      onRevived: () => void revivals.push(clock.now()),
      onLost: (partition) => events.push(`lost ${partition}`),
      onForgotten: (partition) => events.push(`forgotten ${partition}`),
    });
    const die = async (): Promise<void> => {
      this.#processes.delete(id);
      // Timers of a dead process do not run.
      owners.stop();
      turns.close();
      client.disconnect();
      replicas.close();
      await this.#endLease(id, url);
    };
    const process = { id, owners, turns, shares, client, replicas, events, revivals, die };
    this.#processes.set(id, process);
    await owners.start();
    return process;
  }

  /**
   * Resolves when Redis has answered what the processes have asked so far, and what they have asked because of that. A
   * look of a process takes several questions, one after the other.
   */
  async answered(): Promise<void> {
    for (let looks = 0; looks < ANSWER_LOOKS; looks++) {
      const clients = [...this.#processes.values()].map(({ client }) => client);
      await Promise.all(clients.map((client) => client.ping().catch(() => undefined)));
      await settle();
      if (clients.every((client) => openCommands(client) === 0)) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { owners, turns, client, replicas } of this.#processes.values()) {
      owners.stop();
      turns.close();
      client.disconnect();
      replicas.close();
    }
  }

  #deliver(from: string, to: string | null, text: string): void {
    this.onNote(text);
    if (!this.arrives) return;
    for (const [id, { owners }] of this.#processes)
      if (id !== from && (to === null || to === id)) setImmediate(() => owners.receive(from, text));
  }

  #connect(url: string): Client {
    return (this.#options.connect ?? connectCommands)(url.replace(/^http:/, 'redis:'));
  }

  async #endLease(id: string, url: string): Promise<void> {
    const client = this.#connect(url);
    await client.connect();
    for (const group of [0, 1]) await client.del(this.keys.ofGroup(group).live(id));
    client.disconnect();
  }
}

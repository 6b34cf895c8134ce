/** Simulated relays that own partitions, and counts of what they cost the log service and each other. */
import type { Backend } from '../../../src/core/backend.ts';
import type { Core } from '../../../src/core/core.ts';
import { createShares } from '../../../src/core/shares/shares.ts';
import { silentLog } from '../../../src/core/ports.ts';
import { openOwned, type OwnedBackend } from '../../../src/backends/owned/open.ts';
import { OWNER_SCRIPTS } from '../../../src/backends/owned/scripts.ts';
import type { Client } from '../../../src/backends/redis/client.ts';
import { createCrypto } from '../../../src/platform/system.ts';
import { LogNetwork } from '../../../faults/simulate/log-network.ts';
import { LogService } from '../../../faults/simulate/log-service.ts';
import { SimulatedProcess } from '../../../faults/simulate/process.ts';
import { coreOf } from '../../../faults/simulate/relays.ts';
import { Simulation } from '../../../faults/simulate/virtual.ts';

/** As many as a relay has. */
const PARTITIONS = 64;
/** How long partitions may take to come to rest, and how long they must be at rest, in milliseconds. */
const REST_MS = { most: 300_000, quiet: 10_000 } as const;

/** What all relays together did in one second, on average. `read`: the characters of what Redis has answered. */
export type Traffic = {
  /** Commands, and scripts by their names. */
  readonly calls: Readonly<Record<string, number>>;
  readonly published: number;
  readonly delivered: number;
  readonly read: number;
};

export type CountedRelay = {
  readonly process: SimulatedProcess;
  readonly owned: OwnedBackend;
  readonly backend: Backend;
  readonly core: Core;
};

const SCRIPTS: ReadonlyMap<unknown, string> = new Map(
  Object.entries(OWNER_SCRIPTS).map(([name, text]) => [text, name]),
);
const COUNTED = [
  ...(['get', 'mget', 'smembers', 'srem', 'del', 'exists', 'publish', 'eval', 'evalsha'] as const),
  ...(['subscribe', 'unsubscribe', 'lindexBuffer', 'xrangeBuffer'] as const),
];

export class CountedRelays {
  readonly simulation = new Simulation(1);
  readonly #network: LogNetwork;
  readonly relays: CountedRelay[] = [];
  /** The connections to the log service that were made. */
  connections = 0;
  #calls: Record<string, number> = {};
  #published = 0;
  #delivered = 0;
  #read = 0;

  private constructor() {
    const service = new LogService(() => this.simulation.now);
    this.#network = new LogNetwork(this.simulation, service);
    const deliver = service.onPublish;
    service.onPublish = (channel, text) => {
      this.#published++;
      deliver(channel, text);
    };
  }

  /** Starts relays, and waits until partitions move no more. */
  static async open(count: number): Promise<CountedRelays> {
    const made = new CountedRelays();
    for (let i = 0; i < count; i++) made.#start(`node-${i}`);
    await made.#rest(count);
    return made;
  }

  /** Counts what happens in this many seconds. */
  async during(seconds: number): Promise<Traffic> {
    this.#calls = {};
    this.#published = this.#delivered = this.#read = 0;
    await this.simulation.run(seconds * 1_000);
    const each = (count: number): number => count / seconds;
    const calls = Object.fromEntries(Object.entries(this.#calls).map(([name, count]) => [name, each(count)]));
    return { calls, published: each(this.#published), delivered: each(this.#delivered), read: each(this.#read) };
  }

  stop(): void {
    for (const { owned } of this.relays) owned.owners.stop();
  }

  #start(nodeId: string): void {
    const process = new SimulatedProcess(this.simulation, nodeId);
    const { clock, loop, crypto } = process;
    const shares = createShares();
    const { sha256 } = createCrypto('simulation');
    void openOwned({
      connect: () => this.#counted(this.#network.connect(process)),
      ...{ nodeId, clock, loop, system: clock, random: crypto, log: silentLog, version: 'simulated' },
      ...{ namespace: 'scale', partitions: PARTITIONS, groups: 1, digest: 'd', claims: true },
      scopeOf: (userId) => userId,
      memory: { sha256, markSecret: 'x', shares },
    }).then(async (owned) => {
      const { backend } = owned;
      const core = coreOf({ process, clock, shares, backend, core: null, leave: null }, silentLog);
      await core.start();
      this.relays.push({ process, owned, backend, core });
    });
  }

  async #rest(count: number): Promise<void> {
    let [before, since] = ['', 0];
    const isAtRest = (): boolean => {
      const now = JSON.stringify(this.relays.map(({ owned }) => owned.owners.owned.map(({ number }) => number)));
      if (now !== before || this.relays.length < count) [before, since] = [now, this.simulation.now];
      return this.simulation.now - since >= REST_MS.quiet;
    };
    if (!(await this.simulation.run(REST_MS.most, isAtRest))) throw new Error('partitions did not come to rest');
  }

  #counted(client: Client): Client {
    this.connections++;
    const methods = client as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>;
    for (const name of COUNTED) {
      const run = methods[name];
      if (!run) throw new Error(`the connection has no ${name}`);
      methods[name] = async (...args) => {
        const of = name === 'eval' ? (SCRIPTS.get(args[0]) ?? name) : name;
        this.#calls[of] = (this.#calls[of] ?? 0) + 1;
        const reply = await run(...args);
        this.#read += charsOf(reply);
        return reply;
      };
    }
    client.on('message', () => this.#delivered++);
    return client;
  }
}

function charsOf(reply: unknown): number {
  if (typeof reply === 'string' || Buffer.isBuffer(reply)) return reply.length;
  return Array.isArray(reply) ? reply.reduce((sum: number, one: unknown) => sum + charsOf(one), 0) : 0;
}

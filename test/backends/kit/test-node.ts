/** Opens a node over a Redis backend, for tests of mailboxes and leases. The node records what it receives. */
import type { Connection } from '../../../src/core/connections/connection.ts';
import type { MailboxRow, NodeReport } from '../../../src/core/commands/node-store.ts';
import type { RedisBench } from '../../contract/kit/redis-bench.ts';

export const LEASE = { leaseMs: 8_000 };
export const REPORT: NodeReport = {
  listenerAlive: true,
  reconciliationAlive: true,
  activeDrainers: 0,
  connectionWaiters: 0,
  links: 0,
  unfinishedCommands: 0,
  draining: false,
  counters: new Map(),
  process: null,
};
/** A node that records what it receives; each item can be awaited. */
export class TestNode {
  readonly rows: MailboxRow[] = [];
  readonly losses: string[] = [];
  readonly linksLost: Connection[] = [];
  /** The number of times that the node's lease was recovered. */
  revivals = 0;
  readonly #waiting: { readonly done: () => boolean; readonly resolve: () => void }[] = [];
  readonly bench: RedisBench;
  readonly id: string;
  detach: () => void = () => {};

  constructor(bench: RedisBench, id: string) {
    this.bench = bench;
    this.id = id;
  }

  async attach(): Promise<this> {
    this.detach = await this.bench.backend.nodes.attach(this.id, {
      deliver: (row) => this.#note(() => void this.rows.push(row)),
      lost: async (cause) => this.#note(() => void this.losses.push(cause)),
      revived: () => this.#note(() => void this.revivals++),
      linksLost: (found) => this.#note(() => void this.linksLost.push(...found)),
    });
    return this;
  }

  until(done: () => boolean): Promise<void> {
    return done() ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ done, resolve }));
  }

  #note(what: () => void): void {
    what();
    for (const { done, resolve } of this.#waiting) if (done()) resolve();
  }
}

/** Lets the nodes send heartbeats for this long, and waits for everything that the heartbeats start. */
export async function beats(nodes: readonly TestNode[], ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 2_000) {
    await nodes[0]?.bench.clock.advance(2_000);
    for (const node of nodes) await node.bench.backend.nodes.beat(node.id, REPORT);
    for (const node of nodes) await node.bench.quiet();
  }
}

/** Connects a client to a node, as a hello does. Returns its epoch. */
export async function linkUp({ bench, id }: TestNode, clientId: string): Promise<number> {
  const client = { userId: 'alice', clientId };
  const { connection } = await bench.backend.connections.connect({
    ...client,
    instanceId: 'i1',
    nodeId: id,
    clientType: 'browser',
    host: false,
    metadata: null,
    actions: [],
  });
  await bench.backend.commands.rebind(client, { nodeId: id, instanceId: 'i1', epoch: connection.epoch }, 'up');
  return connection.epoch;
}

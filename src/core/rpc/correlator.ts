import type { Command } from '../delivery/command.ts';
import type { Reply, WaitFor } from '../delivery/waiter.ts';
import type { Metrics } from '../metrics.ts';

/** What a caller of this node waits for: as much as it takes to wait for it anew. */
export type KnownWait = {
  readonly rpcId: string;
  /** As last known. */
  readonly command: Command;
  readonly waitFor: WaitFor;
  /** When the caller's own budget ends, epoch milliseconds; null: as long as the command lives. */
  readonly until: number | null;
};

type Waiting = { readonly resolve: (reply: Reply) => void; wait: KnownWait | null };

/** Resolves this node's waiters: each at most once, by the first reply. */
export class Correlator {
  readonly #waiting = new Map<string, Waiting>();
  readonly #metrics: Metrics;
  #released = false;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Registered before the command is admitted, so that no reply can come too early. */
  expect(rpcId: string): Promise<Reply> {
    return new Promise((resolve) => this.#waiting.set(rpcId, { resolve, wait: null }));
  }

  /** The waiter stands in the store. */
  know(wait: KnownWait): void {
    const waiting = this.#waiting.get(wait.rpcId);
    if (waiting) waiting.wait = wait;
  }

  /** Those that stand in the store, or stood. */
  known(): readonly KnownWait[] {
    return [...this.#waiting.values()].flatMap(({ wait }) => wait ?? []);
  }

  forget(rpcId: string): void {
    this.#waiting.delete(rpcId);
  }

  resolve(reply: Reply): void {
    const waiting = this.#waiting.get(reply.rpcId);
    if (!waiting) return this.#metrics.count('replies_dropped');
    this.#waiting.delete(reply.rpcId);
    waiting.resolve(reply);
  }

  /** From now on nobody waits here. Final. */
  release(): void {
    this.#released = true;
  }

  get released(): boolean {
    return this.#released;
  }

  get size(): number {
    return this.#waiting.size;
  }
}

import type { Metrics } from '../metrics.ts';
import type { Reply } from '../delivery/waiter.ts';

/** Resolves this node's waiters: each at most once, by the first reply. */
export class Correlator {
  readonly #waiting = new Map<string, (reply: Reply) => void>();
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Registered before the command is admitted, so that no reply can come too early. */
  expect(rpcId: string): Promise<Reply> {
    return new Promise((resolve) => this.#waiting.set(rpcId, resolve));
  }

  forget(rpcId: string): void {
    this.#waiting.delete(rpcId);
  }

  resolve(reply: Reply): void {
    const resolve = this.#waiting.get(reply.rpcId);
    if (!resolve) return this.#metrics.count('replies_dropped');
    this.#waiting.delete(reply.rpcId);
    resolve(reply);
  }

  get size(): number {
    return this.#waiting.size;
  }
}

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

/** A reply that is expected. It may come before anybody listens: it is then told to who does, at once. */
export class Expected {
  #reply: Reply | null = null;
  #take: ((reply: Reply) => void) | null = null;
  /** Null until the waiter stands in the store. */
  wait: KnownWait | null = null;

  /** `take` is called once. Call this once. */
  listen(take: (reply: Reply) => void): void {
    if (this.#reply) take(this.#reply);
    else this.#take = take;
  }

  resolve(reply: Reply): void {
    if (this.#take) this.#take(reply);
    else this.#reply = reply;
  }
}

/** Resolves this node's waiters: each at most once, by the first reply. */
export class Correlator {
  readonly #waiting = new Map<string, Expected>();
  readonly #metrics: Metrics;
  #released = false;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Registered before the command is admitted, so that no reply can come too early. */
  expect(rpcId: string): Expected {
    const expected = new Expected();
    this.#waiting.set(rpcId, expected);
    return expected;
  }

  /** Those that stand in the store, or stood. */
  known(): readonly KnownWait[] {
    return [...this.#waiting.values()].flatMap(({ wait }) => wait ?? []);
  }

  forget(rpcId: string): void {
    this.#waiting.delete(rpcId);
  }

  resolve(reply: Reply): void {
    const expected = this.#waiting.get(reply.rpcId);
    if (!expected) return this.#metrics.count('replies_dropped');
    this.#waiting.delete(reply.rpcId);
    expected.resolve(reply);
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

import { ChurnMap } from '../churn.ts';
import type { Command } from '../delivery/command.ts';
import type { Reply, WaitFor } from '../delivery/waiter.ts';
import type { Metrics } from '../metrics.ts';
import type { Holdings } from '../shares/shares.ts';

/** A wait of a caller of this node, with all that is needed to register it again. */
export type KnownWait = {
  readonly rpcId: string;
  /** The last known state. */
  readonly command: Command;
  readonly waitFor: WaitFor;
  /** When the caller's own budget ends, in epoch milliseconds; null: as long as the command lives. */
  readonly until: number | null;
};

/**
 * A reply that a caller of this node waits for. If it arrives before `listen` is called, the listener gets it at once.
 */
export class Expected {
  #reply: Reply | null = null;
  #take: ((reply: Reply) => void) | null = null;
  /** Null until the waiter is registered in the store. */
  wait: KnownWait | null = null;
  /** The holdings of the waiting requester. */
  readonly holdings: Holdings;

  constructor(holdings: Holdings) {
    this.holdings = holdings;
  }

  /** `take` is called at most once. Call this method once. */
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
  readonly #waiting = new ChurnMap<string, Expected>();
  readonly #metrics: Metrics;
  #released = false;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /**
   * Registers an expected reply, before the command is admitted, so that no reply can arrive too early. Takes one of
   * the share `waits` until it is resolved or forgotten. The caller of this method must have checked that there is
   * room.
   */
  expect(rpcId: string, holdings: Holdings): Expected {
    const expected = new Expected(holdings);
    holdings.take('waits', 1);
    this.#waiting.set(rpcId, expected);
    return expected;
  }

  /** The waits that are, or were, registered in the store. */
  known(): readonly KnownWait[] {
    return [...this.#waiting.values()].flatMap(({ wait }) => wait ?? []);
  }

  /** Idempotent. */
  forget(rpcId: string): void {
    this.#take(rpcId);
  }

  resolve(reply: Reply): void {
    const expected = this.#take(reply.rpcId);
    if (!expected) return this.#metrics.count('replies_dropped');
    expected.resolve(reply);
  }

  #take(rpcId: string): Expected | undefined {
    const expected = this.#waiting.get(rpcId);
    if (!expected) return undefined;
    this.#waiting.delete(rpcId);
    expected.holdings.release('waits', 1);
    return expected;
  }

  /** After this call no caller waits on this node. Final. */
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

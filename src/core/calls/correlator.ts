/** Matches replies from the store to the callers that wait on this node, and answers each caller once. */
import { ChurnMap } from '../collections.ts';
import type { Command, CommandCaller } from '../commands/command.ts';
import type { Reply, WaitFor } from '../commands/waiter.ts';
import type { Deps } from '../deps.ts';
import type { Metrics } from '../metrics.ts';
import type { Holdings } from '../shares/shares.ts';

/** The waits of a node, with the node's dependencies. */
export type NodeWaits = { readonly deps: Deps; readonly correlator: Correlator };

/** A wait of a caller of this node, with everything that is needed to register the wait in the store again. */
export type KnownWait = {
  readonly rpcId: string;
  /** The last known state of the command. */
  readonly command: Command;
  /** Whether the store is certain to have recorded the command. */
  readonly isRecorded: boolean;
  readonly caller: CommandCaller;
  readonly waitFor: WaitFor;
  /** When the wait began, in epoch milliseconds. */
  readonly since: number;
  /**
   * When the caller's own budget ends, in epoch milliseconds; null if the caller waits as long as the command lives.
   */
  readonly until: number | null;
};

/** A wait as the correlator holds it. */
type CorrelatedWait = {
  readonly rpcId: string;
  /** The amounts of bounded resources that the requester holds. The wait adds to them. */
  readonly holdings: Holdings;
  /** The wait as the store has it; null until the store has registered it. */
  readonly known: KnownWait | null;
  /** Tells the wait that the store has the command. */
  found(): void;
  /** Answers the caller with an error, because the command was never recorded. */
  refuse(): void;
  resolve(reply: Reply): void;
};

/** Resolves this node's waiters: each at most once, by the first reply. */
export class Correlator {
  readonly #waiting = new ChurnMap<string, CorrelatedWait>();
  readonly #metrics: Metrics;
  #released = false;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /**
   * Adds a wait. Call it before the store is asked, so that no reply arrives too early. The wait counts in the user's
   * share `waits` (see `shares/shares.ts`) until it is resolved or forgotten. Before the call, check that the share has
   * room.
   */
  add(waiting: CorrelatedWait): void {
    waiting.holdings.take('waits', 1);
    this.#waiting.set(waiting.rpcId, waiting);
  }

  /** Returns the waits that the store has registered. */
  known(): readonly KnownWait[] {
    return [...this.#waiting.values()].flatMap(({ known }) => known ?? []);
  }

  /** Removes a wait. Idempotent. */
  forget(rpcId: string): void {
    this.#take(rpcId);
  }

  /** Tells a wait that the store has its command. */
  found(rpcId: string): void {
    this.#waiting.get(rpcId)?.found();
  }

  /** Refuses a wait whose command was never recorded. */
  refuse(rpcId: string): void {
    this.#take(rpcId)?.refuse();
  }

  resolve(reply: Reply): void {
    const waiting = this.#take(reply.rpcId);
    if (!waiting) return this.#metrics.count('replies_dropped');
    waiting.resolve(reply);
  }

  #take(rpcId: string): CorrelatedWait | undefined {
    const waiting = this.#waiting.get(rpcId);
    if (!waiting) return undefined;
    this.#waiting.delete(rpcId);
    waiting.holdings.release('waits', 1);
    return waiting;
  }

  /** Marks the node as closing. From then on new callers are answered at once and do not wait. Cannot be undone. */
  release(): void {
    this.#released = true;
  }

  get released(): boolean {
    return this.#released;
  }

  /** When the oldest wait in the store began, in epoch milliseconds; null if there is no wait. */
  get oldestSince(): number | null {
    let oldest: number | null = null;
    for (const { since } of this.known()) if (oldest === null || since < oldest) oldest = since;
    return oldest;
  }

  get size(): number {
    return this.#waiting.size;
  }
}

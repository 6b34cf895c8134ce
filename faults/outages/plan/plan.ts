import type { PromiseName } from '../judge/promises.ts';

/**
 * - `relay-kill`: kill -9, and started again at once; `relay-pause`: SIGSTOP for a while; `relay-drain`: SIGTERM, and started again.
 * - `relay-twin`: a second process of a node that lives; `relay-swap`: so, while the first is paused, which then goes on beside it.
 * - `redis-kill`: kill -9, and started again; `redis-cut`: so, with the last second of its log cut off; `redis-pause`: SIGSTOP.
 * - `redis-failover`: kill -9 of the master, which comes back once the sentinel made the replica the master.
 * - `hole`, `reset`, `half-open`, `drop-reply`, `slow`, `slices`: on one relay's way to Redis; `all-holes`: a hole on
 *   those of all at once.
 * - `links-reset`: the clients' connections break; `links-late`: so, and the relays hear of it only after a while.
 * - `clients-kill`: a client process is killed and started anew, as new instances; `clients-forge`: so, and what the old instances had not
 *   ended is first reported by others that never were given it.
 * - `spill-remove`, `spill-flip`, `spill-link`: some stored payloads are gone, have one other byte, or are links to elsewhere;
 *   `spill-shut`, `spill-full`: nothing can be written where they lie, or there is no room, for a while.
 */
export type FaultKind =
  | 'relay-kill'
  | 'relay-pause'
  | 'relay-drain'
  | 'relay-twin'
  | 'relay-swap'
  | 'redis-kill'
  | 'redis-cut'
  | 'redis-pause'
  | 'redis-failover'
  | 'hole'
  | 'all-holes'
  | 'reset'
  | 'half-open'
  | 'drop-reply'
  | 'slow'
  | 'slices'
  | 'links-reset'
  | 'links-late'
  | 'clients-kill'
  | 'clients-forge'
  | 'spill-remove'
  | 'spill-flip'
  | 'spill-link'
  | 'spill-shut'
  | 'spill-full';

export type Fault = {
  readonly id: number;
  /** After the start of the load. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** The index of the relay (or client process), from 0. */
  readonly target: number;
  readonly holdMs: number;
};

/** Milliseconds. */
export type Range = readonly [fromMs: number, toMs: number];

export type Plan = {
  readonly name: string;
  readonly says: string;
  readonly kinds: readonly FaultKind[];
  readonly gap: Range;
  readonly hold: Range;
  /** How many faults a run has by default. */
  readonly faults: number;
  /** Redis' arguments, besides its address. */
  readonly redis: readonly string[];
  readonly durability: 'memory' | 'aof_everysec' | 'aof_always';
  /** The store is made to lose data. */
  readonly loss: boolean;
  /** The target is always the last relay, to which no client is connected. */
  readonly callersOnly: boolean;
  /** The share of commands that two callers invoke at once. */
  readonly doubled: number;
  /** The longest time that a handler works. */
  readonly workMs: number;
  /** The time that a client has to answer. */
  readonly respondMs: number;
  /** What it is judged by besides the invariants. */
  readonly promises: readonly PromiseName[];
  /** The targets are chosen in turn instead of at random. */
  readonly rolling: boolean;
  /** A master and its replica under a sentinel instead of one Redis; relays have no proxy in front of it. */
  readonly sentinel: boolean;
  /**
   * The characters of params and result besides their canary. Large ones are spilled into a directory that the relays
   * share.
   */
  readonly bytes: number;
  /** After the load, every relay is asked once more for each end. */
  readonly again: boolean;
  /** How many of the clients receive commands. */
  readonly clients: number;
};

/** The defaults of most plans. */
export type PlanRow = Pick<Plan, 'name' | 'says' | 'kinds'> & Partial<Plan>;

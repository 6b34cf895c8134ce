import { LARGE_BYTES, NARROW_PLANS, type PlanRow } from './plans.ts';
import type { PromiseName } from './promises.ts';
import { between, pick, seeded } from './random.ts';

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
  /** After the load began. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** Which of the relays (or client processes), from 0. */
  readonly target: number;
  readonly holdMs: number;
};

type Range = readonly [fromMs: number, toMs: number];

export type Plan = {
  readonly name: string;
  readonly says: string;
  readonly kinds: readonly FaultKind[];
  readonly gap: Range;
  readonly hold: Range;
  /** How many faults a run of it has unless told. */
  readonly faults: number;
  /** Redis' arguments, beside where it listens. */
  readonly redis: readonly string[];
  readonly durability: 'memory' | 'aof_everysec' | 'aof_always';
  /** The store is made to lose what it held. */
  readonly loss: boolean;
  /** The target is always the last relay, and no client is connected to that. */
  readonly callersOnly: boolean;
  /** Share of commands that two callers invoke at once. */
  readonly doubled: number;
  /** How long a handler works at most. */
  readonly workMs: number;
  /** How long a client has to answer. */
  readonly respondMs: number;
  /** What it is judged by beside the invariants. */
  readonly promises: readonly PromiseName[];
  /** The targets come in turn instead of by chance. */
  readonly rolling: boolean;
  /** A master and its replica under a sentinel instead of one Redis; relays have no proxy on their way to it. */
  readonly sentinel: boolean;
  /** Characters that params and result hold beside their canary; large ones are kept apart, in a directory that the relays share. */
  readonly bytes: number;
  /** After the load every relay is asked once more for each end. */
  readonly again: boolean;
  /** How many of the clients are asked for anything. */
  readonly clients: number;
};

const EVERYSEC = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
const NONE = ['--appendonly', 'no', '--save', ''];
const SHORT: Range = [0, 0];
/** A log that is written anew in the middle would hold what is to be lost twice. */
const ONE_LOG = [...EVERYSEC, '--auto-aof-rewrite-percentage', '0'];

const base = {
  gap: [3_000, 10_000],
  hold: SHORT,
  faults: 3,
  redis: EVERYSEC,
  durability: 'aof_everysec',
  loss: false,
  callersOnly: false,
  doubled: 0.1,
  workMs: 20,
  respondMs: 30_000,
  promises: [],
  rolling: false,
  sentinel: false,
  bytes: 0,
  again: false,
  clients: Infinity,
} as const;

const rows: readonly PlanRow[] = [
  ...NARROW_PLANS,
  { name: 'F0', says: 'no fault', kinds: [], faults: 0 },
  { name: 'F1', says: 'kill -9 of a relay', kinds: ['relay-kill'], faults: 20, promises: ['recovery'] },
  {
    name: 'F2',
    says: "kill -9 of the callers' relay",
    kinds: ['relay-kill'],
    callersOnly: true,
    again: true,
    promises: ['recovery', 'reattached'],
  },
  { name: 'F3', says: 'kill -9 of Redis, AOF every second', kinds: ['redis-kill'] },
  {
    name: 'F3a',
    says: 'kill -9 of Redis, AOF always',
    kinds: ['redis-kill'],
    redis: ALWAYS,
    durability: 'aof_always',
  },
  {
    name: 'F4',
    says: 'restart of a Redis that keeps nothing',
    kinds: ['redis-kill'],
    redis: NONE,
    durability: 'memory',
    loss: true,
    promises: ['noticed', 'told'],
  },
  {
    name: 'F5',
    says: "the last second of Redis' log lost",
    kinds: ['redis-cut'],
    redis: ONE_LOG,
    loss: true,
    promises: ['noticed', 'told'],
  },
  {
    name: 'F6',
    says: 'Redis paused for 30 s',
    kinds: ['redis-pause'],
    gap: [35_000, 40_000],
    hold: [30_000, 30_000],
    promises: ['amnesty'],
  },
  {
    name: 'F7',
    says: 'a relay paused for 30 s',
    kinds: ['relay-pause'],
    gap: [35_000, 40_000],
    hold: [30_000, 30_000],
  },
  {
    name: 'F8',
    says: 'the way to Redis: lost, reset, half open, replies dropped, slow',
    kinds: ['hole', 'reset', 'half-open', 'drop-reply', 'slow', 'slices'],
    gap: [4_000, 8_000],
    hold: [2_000, 5_000],
    faults: 6,
  },
  {
    name: 'sentinel',
    says: 'kill -9 of the master under a sentinel',
    kinds: ['redis-failover'],
    gap: [8_000, 12_000],
    sentinel: true,
    loss: true,
    promises: ['told'],
  },
  { name: 'F12', says: 'every command from two callers at once', kinds: [], faults: 0, doubled: 1 },
  { name: 'F13', says: 'clients killed, back as new instances', kinds: ['clients-kill'], workMs: 500 },
  { name: 'F14', says: "clients' connections reset", kinds: ['links-reset'], gap: [1_000, 3_000], faults: 10 },
  {
    name: 'F15',
    says: 'two processes of one node: in turn, at once, and one that was thought dead',
    kinds: ['relay-kill', 'relay-twin', 'relay-swap'],
    gap: [4_000, 8_000],
    faults: 6,
    promises: ['single'],
  },
  {
    name: 'F17',
    says: 'payloads that are kept apart: removed, damaged, replaced, no room',
    kinds: ['spill-remove', 'spill-flip', 'spill-link', 'spill-shut', 'spill-full'],
    gap: [1_500, 3_000],
    hold: [1_000, 2_500],
    faults: 8,
    bytes: LARGE_BYTES,
    promises: ['payloads'],
  },
  {
    name: 'F19',
    says: 'relays drained and started again, one after the other',
    kinds: ['relay-drain'],
    gap: [4_000, 8_000],
    faults: 6,
    workMs: 3_000,
    rolling: true,
    promises: ['drained'],
  },
];

export const PLANS: readonly Plan[] = rows.map((row) => ({ ...base, ...row }));

export function planOf(name: string): Plan {
  const plan = PLANS.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!plan) throw new Error(`there is no plan ${name}: ${PLANS.map((one) => one.name).join(', ')}`);
  return plan;
}

export type ScheduleOptions = {
  readonly seed: number;
  readonly plan: Plan;
  readonly faults: number;
  readonly targets: number;
};

/** What is done when. The same options always give the same. One fault is over before the next begins. */
export function scheduleOf({ seed, plan, faults, targets }: ScheduleOptions): readonly Fault[] {
  const random = seeded(seed);
  const schedule: Fault[] = [];
  let atMs = 0;
  for (let id = 1; id <= faults && plan.kinds.length > 0; id++) {
    atMs += between(random, ...plan.gap);
    const kind = pick(random, plan.kinds);
    const holdMs = between(random, ...plan.hold);
    const chance = between(random, 0, targets - 1);
    const target = plan.callersOnly ? targets - 1 : plan.rolling ? (id - 1) % targets : chance;
    schedule.push({ id, atMs, kind, target, holdMs });
    atMs += holdMs;
  }
  return schedule;
}

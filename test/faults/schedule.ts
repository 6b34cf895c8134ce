import { between, pick, seeded } from './random.ts';

/**
 * - `relay-kill`: kill -9, and started again at once; `relay-pause`: SIGSTOP for a while; `relay-drain`: SIGTERM, and started again.
 * - `redis-kill`: kill -9, and started again; `redis-cut`: so, with the last bytes of its log cut off; `redis-pause`: SIGSTOP.
 * - `hole`, `reset`, `half-open`, `drop-reply`, `slow`, `slices`: on one relay's way to Redis.
 * - `links-reset`: the clients' connections break; `clients-kill`: a client process is killed and started anew, as new instances.
 */
export type FaultKind =
  | 'relay-kill'
  | 'relay-pause'
  | 'relay-drain'
  | 'redis-kill'
  | 'redis-cut'
  | 'redis-pause'
  | 'hole'
  | 'reset'
  | 'half-open'
  | 'drop-reply'
  | 'slow'
  | 'slices'
  | 'links-reset'
  | 'clients-kill';

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
};

const EVERYSEC = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
const NONE = ['--appendonly', 'no', '--save', ''];
const SHORT: Range = [0, 0];

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
} as const;

const rows: readonly (Pick<Plan, 'name' | 'says' | 'kinds'> & Partial<Plan>)[] = [
  { name: 'F0', says: 'no fault', kinds: [], faults: 0 },
  { name: 'slow', says: 'handlers that fill the windows', kinds: [], faults: 0, workMs: 4_000 },
  { name: 'F1', says: 'kill -9 of a relay', kinds: ['relay-kill'], faults: 20 },
  { name: 'F2', says: "kill -9 of the callers' relay", kinds: ['relay-kill'], callersOnly: true },
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
  },
  { name: 'F5', says: "the end of Redis' log lost", kinds: ['redis-cut'], loss: true },
  { name: 'F6', says: 'Redis paused for 30 s', kinds: ['redis-pause'], gap: [35_000, 40_000], hold: [30_000, 30_000] },
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
  { name: 'F12', says: 'every command from two callers at once', kinds: [], faults: 0, doubled: 1 },
  { name: 'F13', says: 'clients killed, back as new instances', kinds: ['clients-kill'], workMs: 500 },
  { name: 'F14', says: "clients' connections reset", kinds: ['links-reset'], gap: [1_000, 3_000], faults: 10 },
  { name: 'F19', says: 'relays drained and started again', kinds: ['relay-drain'], gap: [8_000, 12_000] },
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
    const target = plan.callersOnly ? targets - 1 : between(random, 0, targets - 1);
    schedule.push({ id, atMs, kind, target, holdMs });
    atMs += holdMs;
  }
  return schedule;
}

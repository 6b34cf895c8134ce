/**
 * Lists the plans of fault runs by name (which faults, which load, and which promises), and the runs before a release.
 */
import type { Plan, PlanRow, Range } from './plan.ts';

// Plans that test one kind of fault each.

/** The size of a payload that is too large for a history row, in bytes. */
export const LARGE_BYTES = 24 * 1024;

/**
 * The short plans with one kind of fault each. Planted mistakes must be noticed under them, and a correct relay must
 * survive them.
 */
const NARROW_PLANS: readonly PlanRow[] = [
  { name: 'slow', says: 'slow handlers', kinds: [], faults: 0, workMs: 4_000 },
  {
    name: 'window',
    says: 'two clients, with more than their windows hold',
    kinds: [],
    faults: 0,
    clients: 2,
    workMs: 4_000,
  },
  {
    name: 'F6h',
    says: 'the connection to Redis lost for all relays at once, for longer than a lease',
    kinds: ['all-holes'],
    gap: [9_000, 10_000],
    hold: [12_000, 12_000],
    faults: 1,
    promises: ['amnesty'],
  },
  {
    name: 'F8d',
    says: 'replies of Redis dropped, one after the other',
    kinds: ['drop-reply'],
    gap: [2_000, 2_500],
    hold: [500, 500],
    faults: 12,
  },
  {
    name: 'F13f',
    says: 'clients killed; others report what those ran',
    kinds: ['clients-forge'],
    gap: [2_000, 3_000],
    faults: 2,
    workMs: 500,
  },
  {
    name: 'F14l',
    says: "clients' connections broken, which the relays notice late",
    kinds: ['links-late'],
    gap: [1_000, 3_000],
    hold: [1_500, 1_500],
    faults: 2,
  },
  {
    name: 'F17k',
    says: 'kill -9 of a relay with spilled payloads, while nothing removes them',
    kinds: ['relay-kill'],
    gap: [2_000, 3_000],
    faults: 2,
    bytes: LARGE_BYTES,
    promises: ['payloads'],
  },
];

const EVERYSEC = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
const NONE = ['--appendonly', 'no', '--save', ''];
const SHORT: Range = [0, 0];
/**
 * The arguments of a Redis that never rewrites its log. After a rewrite, cutting off the log's end would lose more than
 * the last second.
 */
const ONE_LOG = [...EVERYSEC, '--auto-aof-rewrite-percentage', '0'];

const base = {
  gap: [3_000, 10_000],
  hold: SHORT,
  faults: 3,
  redis: EVERYSEC,
  durability: 'aof_everysec',
  loss: false,
  callersOnly: false,
  aimed: false,
  doubled: 0.1,
  workMs: 20,
  connectMs: 15_000,
  respondMs: 30_000,
  promises: [],
  rolling: false,
  sentinel: false,
  pair: false,
  env: {},
  form: null,
  bytes: 0,
  again: false,
  clients: Infinity,
  stops: false,
  sync: '100',
} as const;

/** The connections from each relay pass through a proxy that counts commands. Breaks follow one another quickly. */
const BREAKS: Pick<Plan, 'gap' | 'form'> = { gap: [200, 500], form: 'single' };

/** Handlers take some time, so that each fault of a link hits commands in all states. */
const LINKS: Pick<Plan, 'faults' | 'workMs' | 'promises'> = {
  faults: 6,
  workMs: 500,
  promises: ['unrepeated', 'timely'],
};

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
    promises: ['noticed', 'answered'],
  },
  {
    name: 'F5',
    says: "the last second of Redis' log lost",
    kinds: ['redis-cut'],
    redis: ONE_LOG,
    loss: true,
    promises: ['noticed', 'answered'],
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
    says: 'the connection to Redis: lost, reset, half open, replies dropped, slow',
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
    promises: ['answered'],
  },
  { name: 'F12', says: 'every command from two callers at once', kinds: [], faults: 0, doubled: 1 },
  { name: 'F13', says: 'clients killed, back as new instances', kinds: ['clients-kill'], workMs: 500 },
  { name: 'F14', says: "clients' connections reset", kinds: ['links-reset'], gap: [1_000, 3_000], faults: 10 },
  {
    name: 'F15',
    says: 'two processes of one node: one after the other, at once, and one that was believed dead',
    kinds: ['relay-kill', 'relay-twin', 'relay-swap'],
    gap: [4_000, 8_000],
    faults: 6,
    promises: ['single'],
  },
  {
    name: 'F17',
    says: 'spilled payloads: removed, damaged, replaced, no room',
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
  {
    name: 'F20',
    says: 'each connection to Redis broken twice at SUBSCRIBE and at each command of its reconnection',
    kinds: ['redis-break'],
    faults: 13,
    ...BREAKS,
  },
  {
    name: 'F20r',
    says: 'a relay whose connection to Redis breaks at each command of its start',
    kinds: ['relay-break'],
    faults: 40,
    ...BREAKS,
  },
  { name: 'F20t', says: 'F20 over TLS', kinds: ['redis-break'], faults: 11, ...BREAKS, form: 'tls' },
  { name: 'F20s', says: 'F20 under a sentinel', kinds: ['redis-break'], faults: 11, ...BREAKS, form: 'sentinel' },
  {
    name: 'F20c',
    says: 'F20 over a cluster',
    kinds: ['redis-break'],
    faults: 11,
    ...BREAKS,
    form: 'cluster',
    durability: 'memory',
  },
  {
    name: 'F21',
    says: 'the connections of a relay to Redis broken 300 times a minute',
    kinds: ['redis-flap'],
    hold: [20_000, 20_000],
  },
  {
    name: 'F22',
    says: 'kill -9 of Redis 60 times a minute, AOF always',
    kinds: ['redis-kills'],
    hold: [20_000, 20_000],
    redis: ALWAYS,
    durability: 'aof_always',
  },
  {
    name: 'F23',
    says: "clients' hellos that reach their relay after a later one",
    kinds: ['links-hello'],
    gap: [2_000, 3_000],
    hold: [500, 2_000],
    ...LINKS,
    promises: ['ordered', ...LINKS.promises],
  },
  {
    name: 'F24',
    says: 'clients frozen for longer than their commands have',
    kinds: ['clients-freeze'],
    gap: [1_000, 2_000],
    hold: [8_000, 10_000],
    ...LINKS,
    faults: 3,
    connectMs: 2_000,
    respondMs: 4_000,
  },
  {
    name: 'F25',
    says: "clients' connections half open: what relays, or clients, send is swallowed, and the clients come back",
    kinds: ['links-deaf', 'links-mute'],
    gap: [2_000, 3_000],
    hold: [2_000, 4_000],
    ...LINKS,
  },
];

/** The size in bytes of a payload of which few fill a relay, and the limits of such relays. */
const FULL_BYTES = 8 * 1024;
const FULL_AT = {
  CALLBOARD_HISTORY_SHARE_BYTES: String(1024 * 1024),
  CALLBOARD_HISTORY_MAX_BYTES: String(4 * 1024 * 1024),
  CALLBOARD_RESULT_SHARE_BYTES: String(1024 * 1024),
  CALLBOARD_RESULT_MAX_BYTES: String(2 * 1024 * 1024),
};

/** The plans for relays that own partitions, which need `--owned`. */
const OWNED_PLANS: readonly PlanRow[] = [
  {
    name: 'F26',
    says: 'kill -9 of an owner, a caller’s or a client’s relay, most while an owner takes over, hands over or writes a snapshot',
    kinds: ['relay-kill'],
    gap: [1_000, 3_000],
    faults: 10,
    aimed: true,
    workMs: 300,
    promises: ['recovery', 'aimed'],
  },
  // The gap is long, because after a kill no relay owns anything until all have started and waited for 1.5 leases, and
  // calls need some time after that.
  { name: 'F27', says: 'kill -9 of all relays at once', kinds: ['relays-kill'], gap: [10_000, 14_000] },
  { name: 'F28', says: 'the connections for mail closed', kinds: ['mail-cut'], gap: [1_000, 3_000], faults: 10 },
  {
    name: 'F29',
    says: 'the last second of Redis’ log lost, or kill -9 of a relay',
    kinds: ['redis-cut', 'relay-kill'],
    redis: ONE_LOG,
    faults: 6,
  },
  {
    name: 'F30',
    says: 'an owner cut from Redis alone, for longer than its lease',
    kinds: ['hole'],
    gap: [4_000, 8_000],
    hold: [4_000, 8_000],
  },
  {
    name: 'F31',
    says: 'all connections of all relays to Redis broken at once',
    kinds: ['all-reset'],
    gap: [1_000, 3_000],
    faults: 10,
  },
  {
    name: 'F32',
    says: 'the clock of a relay wrong, by up to a minute',
    kinds: ['relay-clock'],
    gap: [1_000, 2_000],
    hold: [1_000, 4_000],
    faults: 6,
  },
  {
    name: 'F33',
    says: 'kill -9 of a master of a cluster, whose replica takes its place',
    kinds: ['cluster-failover'],
    gap: [1_000, 3_000],
    form: 'cluster',
    durability: 'memory',
  },
  {
    name: 'F34',
    says: 'slots of a cluster that move to another master',
    kinds: ['slots-move'],
    gap: [1_000, 2_000],
    faults: 6,
    form: 'cluster',
    durability: 'memory',
  },
  {
    name: 'F35',
    says: 'a failover to a replica that lacks a handover',
    kinds: ['handover-failover'],
    gap: [1_000, 2_000],
    pair: true,
    durability: 'memory',
    promises: ['hit'],
  },
  {
    name: 'F36',
    says: 'kill -9 of two of three full relays',
    kinds: ['relays-full'],
    gap: [40_000, 40_000],
    hold: [15_000, 15_000],
    faults: 1,
    bytes: FULL_BYTES,
    env: FULL_AT,
    promises: ['survivor'],
  },
  {
    name: 'F37',
    says: 'pauses and revocations again and again, relays killed around the answers, and stopped for about a lease',
    kinds: ['relay-kill-pausing', 'relay-kill-pausing', 'relay-kill', 'relay-pause', 'links-away-pausing'],
    gap: [1_000, 3_000],
    hold: [1_500, 5_000],
    faults: 10,
    stops: true,
    promises: ['paused', 'revoked'],
  },
];

/** The plans for data directories, which need `--durable`. */
const DATA_PLANS: readonly PlanRow[] = [
  {
    name: 'D1',
    says: 'loss of power, DATA_SYNC=100',
    kinds: ['relay-power'],
    faults: 5,
    loss: true,
    promises: ['noticed', 'kept'],
  },
  {
    name: 'D1k',
    says: 'kill -9, and losses of power soon after it, DATA_SYNC=100',
    kinds: ['relay-kill', 'relay-power'],
    gap: [500, 3_000],
    faults: 8,
    loss: true,
    promises: ['noticed', 'kept'],
  },
  {
    name: 'D1o',
    says: 'loss of power, DATA_SYNC=off',
    kinds: ['relay-power'],
    faults: 2,
    loss: true,
    sync: 'off',
    promises: ['noticed', 'kept'],
  },
  {
    name: 'D1a',
    says: 'loss of power, DATA_SYNC=always',
    kinds: ['relay-power'],
    faults: 5,
    sync: 'always',
    promises: ['kept'],
  },
  { name: 'D2', says: 'kill -9 in the middle of a write', kinds: ['relay-tear'], faults: 10 },
  {
    name: 'D3',
    says: 'the disk of the data directory is full for a while',
    kinds: ['data-full'],
    hold: [3_000, 6_000],
    faults: 4,
    promises: ['full'],
  },
  { name: 'D4', says: 'kill -9 while the relay closes', kinds: ['relay-halt'], faults: 10 },
  {
    name: 'D5',
    says: 'starts on a read-only data directory',
    kinds: ['relay-shut'],
    faults: 3,
    promises: ['shut'],
  },
  {
    name: 'D6',
    says: 'kill -9 of the relay, one soon after the other',
    kinds: ['relay-kill'],
    gap: [500, 3_000],
    faults: 20,
    promises: ['recovery'],
  },
];
export const PLANS: readonly Plan[] = [...rows, ...OWNED_PLANS, ...DATA_PLANS].map((row) => ({ ...base, ...row }));

export function planOf(name: string): Plan {
  const plan = PLANS.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!plan) throw new Error(`there is no plan ${name}: ${PLANS.map((one) => one.name).join(', ')}`);
  return plan;
}

// The fault runs of `npm run faults -- --gate`, before a release.

/** A run of a plan before a release. */
export type ReleaseRun = {
  readonly plan: string;
  readonly seed: number;
  readonly commands: number;
  /** The number of faults, the time between them, and their duration. Defaults: those of the plan. */
  readonly faults?: number;
  readonly gap?: Range;
  readonly hold?: Range;
  /**
   * The maximum number of commands per second. It is limited because three relays, the store, the clients and the
   * callers share two cores.
   */
  readonly rate: number;
};

/** The number of commands per second in most runs. */
const RATE = 120;
/**
 * The number of commands per second if payloads are spilled. Two cores can handle about 100 such commands per second.
 */
const LARGE_RATE = 60;
const SEEDS = [11, 12, 13];
/** The plans that run once for each seed, with the number of commands. */
const REPEATED = { F2: 4_000, F3: 4_000, F3a: 4_000, F4: 3_000, F5: 3_000, F6: 3_000, F7: 3_000, F8: 4_000 };
/** The plans that run only once, with the number of commands. */
const ONCE = {
  ...{ F12: 4_000, F13: 4_000, F14: 4_000, F15: 3_000, F17: 3_000, F19: 4_000, sentinel: 2_000 },
  ...{ F20: 4_000, F20r: 4_000, F20t: 4_000, F20s: 4_000, F20c: 4_000, F21: 4_000, F22: 4_000 },
  ...{ F23: 2_000, F24: 2_000, F25: 2_000 },
};
/**
 * The plans with a single fault that takes most of the run: a process is stopped for 30 s, or a failover is awaited.
 */
const ONE_FAULT: readonly string[] = ['F6', 'F7', 'sentinel'];

const repeated = Object.entries(REPEATED).flatMap(([plan, commands]) =>
  SEEDS.map((seed) => ({ plan, seed, commands, rate: RATE })),
);
const once = Object.entries(ONCE).map(([plan, commands]) => ({
  plan,
  seed: 21,
  commands,
  rate: plan === 'F17' ? LARGE_RATE : RATE,
}));

/**
 * The runs before a release, in order: many kills of relays, then the other plans of stores and relays three times
 * each, and the rest once.
 */
const RUNS: readonly ReleaseRun[] = [
  { plan: 'F1', seed: 21, commands: 50_000, faults: 20, rate: 330 },
  ...[...repeated, ...once].map((run) => (ONE_FAULT.includes(run.plan) ? { ...run, faults: 1 } : run)),
];

/** Returns the runs before a release. `added`: is added to each seed; 0 gives the usual seeds. */
export function releaseRuns(added: number): readonly ReleaseRun[] {
  return RUNS.map((run) => ({ ...run, seed: run.seed + added }));
}

/** The plans for one relay with a data directory, with the number of commands in the short form. */
const DURABLE = {
  ...{ F0: 500, F1: 2_000, F2: 1_000, F7: 1_000, F12: 1_000, F13: 1_000, F14: 1_000, F15: 1_000, F17: 500, F19: 1_000 },
  ...{ F23: 500, F24: 500, F25: 500 },
  ...{ D1: 1_500, D1k: 1_500, D1o: 500, D1a: 1_500, D2: 1_500, D3: 1_500, D4: 1_500, D5: 500 },
};

/**
 * Returns the runs of one relay with a data directory. `long`: only the plans for data directories, with more faults,
 * and 200 kills under 100,000 commands.
 */
export function durableRuns(seed: number, long: boolean): readonly ReleaseRun[] {
  if (long) {
    const plans = ['D1', 'D1k', 'D1a', 'D2', 'D3', 'D4'];
    const more = plans.map((plan) => ({ plan, seed, commands: 3_000, faults: 15, rate: RATE }));
    return [{ plan: 'D6', seed, commands: 100_000, faults: 200, rate: 330 }, ...more];
  }
  return Object.entries(DURABLE).map(([plan, commands]) => ({
    plan,
    seed,
    commands,
    rate: plan === 'F17' ? LARGE_RATE : RATE,
    ...(ONE_FAULT.includes(plan) && { faults: 1 }),
  }));
}

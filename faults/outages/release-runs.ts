/** Lists the fault runs that `npm run faults -- --gate` makes before a release. */

/** One run of one plan before a release. */
export type ReleaseRun = {
  readonly plan: string;
  readonly seed: number;
  readonly commands: number;
  /** The number of faults; by default that of the plan. */
  readonly faults?: number;
  /**
   * The highest number of commands per second. Three relays, the store, the clients and the callers share two cores.
   */
  readonly rate: number;
};

/** The number of commands per second of most runs. */
const RATE = 120;
/**
 * The number of commands per second if payloads are spilled. Two cores can handle about 100 such commands per second.
 */
const LARGE_RATE = 60;
const SEEDS = [11, 12, 13];
/** The number of commands of each plan that runs once for each seed. */
const REPEATED = { F2: 4_000, F3: 4_000, F3a: 4_000, F4: 3_000, F5: 3_000, F6: 3_000, F7: 3_000, F8: 4_000 };
/** The number of commands of each plan that runs only once. */
const ONCE = {
  ...{ F12: 4_000, F13: 4_000, F14: 4_000, F15: 3_000, F17: 3_000, F19: 4_000, sentinel: 2_000 },
  ...{ F20: 4_000, F20r: 4_000, F20t: 4_000, F20s: 4_000, F20c: 4_000, F21: 4_000, F22: 4_000 },
};
/** The plans whose single fault takes most of the run: a process is stopped for 30 s, or a failover is awaited. */
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
 * The runs before a release, in order: many kills of relays, then the other plans of the store and of relays three
 * times each, and the rest once.
 */
const RUNS: readonly ReleaseRun[] = [
  { plan: 'F1', seed: 21, commands: 50_000, faults: 20, rate: 330 },
  ...[...repeated, ...once].map((run) => (ONE_FAULT.includes(run.plan) ? { ...run, faults: 1 } : run)),
];

/** Returns the runs before a release. `added`: a number that is added to each seed; 0 for the usual seeds. */
export function releaseRuns(added: number): readonly ReleaseRun[] {
  return RUNS.map((run) => ({ ...run, seed: run.seed + added }));
}

/** One run of one plan. */
export type GateRun = {
  readonly plan: string;
  readonly seed: number;
  readonly commands: number;
  /** Default: the plan's own number. */
  readonly faults?: number;
  /**
   * The highest number of commands per second: three relays, the store, the clients and the callers share two cores.
   */
  readonly rate: number;
};

const RATE = 120;
/** With spilled payloads, two cores can handle about 100 per second. */
const LARGE_RATE = 60;
const SEEDS = [11, 12, 13];
/** The number of commands of each plan that is run once per seed, and of each that is run once. */
const REPEATED = { F2: 4_000, F3: 4_000, F3a: 4_000, F4: 3_000, F5: 3_000, F6: 3_000, F7: 3_000, F8: 4_000 };
const ONCE = { F12: 4_000, F13: 4_000, F14: 4_000, F15: 3_000, F17: 3_000, F19: 4_000, sentinel: 2_000 };
/** One fault takes most of the run: a process is stopped for 30 s, or waits for a sentinel. */
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
 * The runs of a release, in order: many kills of relays, each other plan of the store and of relays three times, the
 * rest once.
 */
export const GATE: readonly GateRun[] = [
  { plan: 'F1', seed: 21, commands: 50_000, faults: 20, rate: 330 },
  ...[...repeated, ...once].map((run) => (ONE_FAULT.includes(run.plan) ? { ...run, faults: 1 } : run)),
];

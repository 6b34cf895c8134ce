/**
 * `npm run faults` runs three relays over one Redis with honest clients and callers, under faults that are drawn from a
 * seed. It prints the results of all commands.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runTests } from '../lib/run-tests.ts';
import { namesOf, positiveNumber, readOptions, wholeNumber } from '../lib/options.ts';
import { runEpisode, type Episode, type EpisodeOptions } from './episode.ts';
import { ownedRuns } from './plan/owned-runs.ts';
import { durableRuns, planOf, PLANS, type ReleaseRun, releaseRuns } from './plan/plans.ts';
import { type Mutant, plantMutant } from './mutants/plant.ts';
import { MUTANTS } from './mutants/mutants.ts';
import type { Plan } from './plan/plan.ts';

const PLAN_NAMES = PLANS.map(({ name }) => name);
const MUTANT_NAMES = MUTANTS.map(({ name }) => name);
const OPTIONS = {
  plan: {
    type: 'string',
    takes: 'a,b',
    says: `the faults: ${PLAN_NAMES.join(', ')} (F0; with --durable those of one relay)`,
  },
  seed: { type: 'string', takes: 'n', says: 'the faults and the commands are drawn from it (random)' },
  commands: { type: 'string', default: '2000', takes: 'n', says: 'commands of each plan' },
  rate: { type: 'string', default: '500', takes: 'n', says: 'the highest number of commands a second' },
  kills: { type: 'string', takes: 'n', says: 'how many faults (those of the plan)' },
  direct: { type: 'boolean', default: false, says: 'one relay without Redis, without faults' },
  owned: {
    type: 'boolean',
    default: false,
    says: 'relays that own partitions, whose logs are in Redis; --gate: each row of their failures with 20 faults',
  },
  durable: { type: 'boolean', default: false, says: 'one relay without Redis, with a data directory; --gate: long' },
  gate: {
    type: 'boolean',
    default: false,
    says: 'the runs before a release: each plan at its size, one after the other; --seed is added to each seed',
  },
  mutants: { type: 'boolean', default: false, says: 'planted mistakes, each of which must be caught' },
  careful: {
    type: 'boolean',
    default: false,
    says: 'all contract suites over Redis, which decides each act of a call on its own; --gate includes them',
  },
  only: { type: 'string', takes: 'a,b', says: 'with --mutants: only these' },
  source: { type: 'string', takes: 'f', says: 'the relays run from there instead of from src' },
} as const;

const given = readOptions({ program: 'npm run faults', about: null, options: OPTIONS }, (values) => ({
  plans: values.plan === undefined ? null : namesOf('plan', values.plan, PLAN_NAMES),
  seed: values.seed === undefined ? null : wholeNumber('seed', values.seed),
  commands: wholeNumber('commands', values.commands),
  rate: positiveNumber('rate', values.rate),
  faults: values.kills === undefined ? {} : { faults: wholeNumber('kills', values.kills) },
  direct: values.direct || values.durable,
  durable: values.durable,
  owned: values.owned,
  gate: values.gate,
  mutants: values.mutants,
  careful: values.careful,
  only: namesOf('only', values.only, MUTANT_NAMES),
  source: values.source,
}));
const isOfOwners = ({ aimed, stops }: Plan): boolean => aimed || stops;
const { direct, durable, owned, source } = given;
if (!owned && given.plans?.some((name) => isOfOwners(planOf(name)))) throw new Error('this plan needs --owned');
const seed = given.seed ?? Math.floor(Math.random() * 1e9);
const write = (line: string): void => void process.stdout.write(`${line}\n`);

function optionsOf({ plan: name, seed, commands, rate, faults, gap, hold }: ReleaseRun): EpisodeOptions {
  const plan = { ...planOf(name), ...(gap && { gap }), ...(hold && { hold }) };
  return { plan, seed, commands, perSecond: rate, faults: faults ?? plan.faults, direct, durable, owned, source };
}

/** Returns the run of this plan with the options from the command line. */
function asked(plan: string): ReleaseRun {
  const { commands, rate, faults } = given;
  return { plan, seed, commands, rate, ...faults };
}

const WIDTHS = [8, 9, 7, 9, 9, 10, 8, 8, 10, 8, 6, 6, 6, 8, 7];
const HEAD =
  'plan seed faults attempts completed cancelled expired unknown recovered refused late lost twice seconds verdict';

function line(cells: readonly unknown[]): string {
  return cells.map((cell, index) => String(cell).padStart(WIDTHS[index] ?? 8)).join(' ');
}

function tell({ plan, seed }: ReleaseRun, { report, faults, seconds, folder }: Episode): void {
  const { counts, outcomes, says, green } = report;
  const { completed, cancelled, expired, outcome_unknown: unknown, ...otherEnds } = outcomes;
  const ends = [completed, cancelled, expired, unknown];
  const others = [counts.recovered, counts.refused, counts.late, counts.lost, counts.duplicates];
  const cells = [
    planOf(plan).name,
    seed,
    faults,
    counts.attempts,
    ...ends.map((n) => n ?? 0),
    ...others,
    seconds.toFixed(0),
  ];
  write(line([...cells, green ? 'green' : 'RED']));
  const told = Object.entries(otherEnds).map(([outcome, count]) => `${outcome} ${count}`);
  if (told.length > 0) write(`      other ends: ${told.join(', ')}`);
  for (const figures of says) write(`      ${figures}`);
  for (const { invariant, what, ids } of report.violations) {
    write(`      ${invariant} ${what} (${ids.length}): ${ids.slice(0, 5).join(', ')}`);
  }
  if (report.unproven.length > 0) write(`      nothing to judge by: ${report.unproven.join(', ')}`);
  if (!green) write(`      logs: ${folder}`);
}

function chosenRuns(): readonly ReleaseRun[] {
  const { plans, gate } = given;
  if (durable && plans === null) return durableRuns(seed, gate);
  if (owned && gate) return ownedRuns(seed).filter(({ plan }) => plans === null || plans.includes(plan));
  return gate ? releaseRuns(given.seed ?? 0) : (plans ?? ['F0']).map(asked);
}

async function runPlans(): Promise<boolean> {
  const runs = chosenRuns();
  if (direct) write(durable ? 'direct mode with a data directory' : 'direct mode');
  write(line(HEAD.split(' ')));
  let reds = 0;
  for (const run of runs) {
    const episode = await runEpisode(optionsOf(run));
    tell(run, episode);
    const isCut = given.gate && episode.faults < (run.faults ?? 0);
    if (isCut) write(`      only ${episode.faults} of ${run.faults} faults were done: RED`);
    if (!episode.report.green || isCut) reds++;
  }
  write(`${runs.length} runs, ${reds} RED`);
  return reds === 0;
}

/** Runs the contract suites over Redis in the mode in which Redis decides each step of a call separately. */
async function runCarefully(): Promise<boolean> {
  const folder = 'test/contract';
  const names = readdirSync(join(import.meta.dirname, '..', '..', folder));
  const files = names.filter((name) => /^(redis-|commands-same).*\.test\.ts$/.test(name));
  const { failed } = await runTests({
    files: files.map((name) => `${folder}/${name}`),
    env: { CALLBOARD_TEST_CAREFUL: '1' },
  });
  write(`${files.length} contract suites, act by act: ${failed ? `RED: ${failed.name}` : 'green'}`);
  return failed === null;
}

async function runMutants(): Promise<boolean> {
  const ofRun = direct ? 'direct' : owned ? 'owned' : 'shared';
  const own = MUTANTS.filter(({ mode, name }) => mode === ofRun && given.only.includes(name));
  write(`seed ${seed}: ${own.length} mutants`);
  let caught = own.length > 0;
  for (const mutant of own) caught = (await isCaught(mutant)) && caught;
  return caught;
}

async function isCaught(mutant: Mutant): Promise<boolean> {
  await using planted = plantMutant(mutant, source);
  const { report, folder, seconds } = await runEpisode({ ...optionsOf(asked(mutant.plan)), source: planted.source });
  const by = [...new Set(report.violations.map(({ invariant }) => invariant))];
  const caught = by.some((invariant) => mutant.caughtBy.includes(invariant));
  write(
    `${caught ? 'caught' : 'MISSED'}  ${mutant.name} (${mutant.says}) in ${mutant.plan}, ${seconds.toFixed(0)} s: ${by.join(' ') || 'nothing'}`,
  );
  if (!caught) write(`      logs: ${folder}`);
  return caught;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
async function run(): Promise<boolean> {
  if (given.mutants) return runMutants();
  if (given.careful) return runCarefully();
  const isGreen = await runPlans();
  return given.gate && !direct && !owned ? (await runCarefully()) && isGreen : isGreen;
}

process.exitCode = (await run()) ? 0 : 1;

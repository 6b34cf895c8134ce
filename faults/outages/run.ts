/**
 * `npm run faults`: three relays over one Redis with honest clients and callers, under faults drawn from a seed. Prints
 * what became of every command.
 *
 * npm run faults -- --plan F1,F3 --commands 50000 --kills 20 --rate 500 --seed 1
 * npm run faults -- --gate               the runs before a release: each plan at its size, one after the other
 * npm run faults -- --gate --seed 100    the same runs with other seeds: the number is added to each
 * npm run faults -- --direct             one relay without Redis, without faults
 * npm run faults -- --mutants [--only a,b]  planted mistakes, each of which must be caught
 * npm run faults -- --source <folder>    the relays run from there instead of from src
 */
import { parseArgs } from 'node:util';
import { runEpisode, type Episode, type EpisodeOptions } from './episode.ts';
import { releaseRuns, type ReleaseRun } from './release-runs.ts';
import type { Mutant } from './mutants/mutant.ts';
import { MUTANTS } from './mutants/mutants.ts';
import { plantMutant } from './mutants/plant.ts';
import { planOf } from './plan/plans.ts';

const { values } = parseArgs({
  options: {
    plan: { type: 'string' },
    seed: { type: 'string' },
    commands: { type: 'string', default: '2000' },
    rate: { type: 'string', default: '500' },
    kills: { type: 'string' },
    direct: { type: 'boolean', default: false },
    gate: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string' },
    source: { type: 'string' },
  },
});

const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
const direct = values.direct;
const write = (line: string): void => void process.stdout.write(`${line}\n`);

function optionsOf({ plan: name, seed, commands, rate, faults }: ReleaseRun): EpisodeOptions {
  const plan = planOf(name);
  return { plan, seed, commands, perSecond: rate, faults: faults ?? plan.faults, direct, source: values.source };
}

/** Returns the run of this plan with the options of the command line. */
function asked(plan: string): ReleaseRun {
  const faults = values.kills === undefined ? {} : { faults: Number(values.kills) };
  return { plan, seed, commands: Number(values.commands), rate: Number(values.rate), ...faults };
}

const WIDTHS = [8, 9, 7, 9, 9, 10, 8, 8, 10, 8, 6, 6, 6, 8, 7];
const HEAD =
  'plan seed faults attempts completed cancelled expired unknown recovered refused late lost twice seconds verdict';

function line(cells: readonly unknown[]): string {
  return cells.map((cell, index) => String(cell).padStart(WIDTHS[index] ?? 8)).join(' ');
}

function tell({ plan, seed }: ReleaseRun, { report, faults, seconds, folder }: Episode): void {
  const { counts, outcomes, says, green } = report;
  const ends = [outcomes['completed'], outcomes['cancelled'], outcomes['expired'], outcomes['outcome_unknown']];
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
  for (const figures of says) write(`      ${figures}`);
  for (const { invariant, what, ids } of report.violations) {
    write(`      ${invariant} ${what} (${ids.length}): ${ids.slice(0, 5).join(', ')}`);
  }
  if (report.unproven.length > 0) write(`      nothing to judge by: ${report.unproven.join(', ')}`);
  if (!green) write(`      logs: ${folder}`);
}

async function runPlans(): Promise<boolean> {
  const runs = values.gate ? releaseRuns(Number(values.seed ?? 0)) : (values.plan ?? 'F0').split(',').map(asked);
  if (direct) write('direct mode');
  write(line(HEAD.split(' ')));
  let reds = 0;
  for (const run of runs) {
    const episode = await runEpisode(optionsOf(run));
    tell(run, episode);
    if (!episode.report.green) reds++;
  }
  write(`${runs.length} runs, ${reds} RED`);
  return reds === 0;
}

async function runMutants(): Promise<boolean> {
  const wanted = values.only?.split(',');
  const own = MUTANTS.filter(
    ({ mode, name }) => mode === (direct ? 'direct' : 'shared') && (wanted?.includes(name) ?? true),
  );
  write(`seed ${seed}: ${own.length} mutants`);
  let caught = own.length > 0;
  for (const mutant of own) caught = (await isCaught(mutant)) && caught;
  return caught;
}

async function isCaught(mutant: Mutant): Promise<boolean> {
  await using planted = plantMutant(mutant, values.source);
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
process.exitCode = (await (values.mutants ? runMutants() : runPlans())) ? 0 : 1;

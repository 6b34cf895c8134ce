/** Runs the judge of a guard mutant on a copy of the sources, and says whether it noticed the missing guard. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runTests } from '../lib/run-tests.ts';
import { copySources, plantMutant } from '../outages/mutants/plant.ts';
import { fuzz } from '../fuzz/fuzz.ts';
import { runEpisode } from '../neighbours/episode.ts';
import { faultsOf } from '../neighbours/verdict.ts';
import type { GuardMutant, Judge } from './mutant.ts';
import type { SimulatedMutant } from './simulated.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** The files and folders that tests need beside a copy of the sources. */
const FOR_TESTS = [
  'test',
  'faults',
  'vitest.config.ts',
  'tsconfig.json',
  'PROTOCOL.md',
  'README.md',
  'docs',
  'scripts',
];
/** The acts of a simulated run, and how long its process may take, in milliseconds. */
const SIMULATED_STEPS = 200;
const SIMULATED_MS = 7_200_000;
/** The seed of the fuzzer's inputs, the same for every mutant. */
const SEED = 1;

/**
 * Returns what the judge of the mutant found, as text; null if it did not notice the mistake. `source`: the folder of
 * the sources, if not this project's. The tests beside that folder are used.
 */
export async function caught(mutant: GuardMutant, source?: string): Promise<string | null> {
  await using planted = plantMutant(mutant, source);
  return await judgeWith(mutant.judge, { ...planted, root: source === undefined ? ROOT : dirname(source) });
}

/** What became of a mutant in simulations: the first seed that noticed it, and what that run said. */
export type Simulated =
  | { readonly kind: 'caught'; readonly seed: number; readonly says: string }
  /** No seed noticed it. */
  | { readonly kind: 'missed' }
  /** The runs took too long, or ended without a word: that proves nothing. */
  | { readonly kind: 'unjudged'; readonly says: string };

/** Runs simulations with the mistake, with the seeds from 1 to `seeds`, up to the first one that notices it. */
export async function simulateMutant(mutant: SimulatedMutant, seeds: number): Promise<Simulated> {
  await using planted = plantMutant(mutant);
  cpSync(join(ROOT, 'faults'), join(planted.folder, 'faults'), { recursive: true, force: false });
  const program = join(planted.folder, 'faults', 'simulate', 'run.ts');
  const size = ['--seeds', String(seeds), '--steps', String(SIMULATED_STEPS)];
  const args = [program, '--acts', mutant.acts, '--store', mutant.store, ...size, '--first'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: SIMULATED_MS });
  if (status === 0) return { kind: 'missed' };
  if (status === null) return { kind: 'unjudged', says: `${seeds} seeds took too long` };
  const [, seed, says = ''] = /^seed (\d+) broke.*\n\s*(.*)$/m.exec(stdout) ?? [];
  if (seed === undefined) return { kind: 'unjudged', says: `it ended: ${/^\w*Error.*$/m.exec(stderr)?.[0] ?? stderr}` };
  return { kind: 'caught', seed: Number(seed), says };
}

async function judgeWith(
  judge: Judge,
  { folder, source, root }: { readonly folder: string; readonly source: string; readonly root: string },
): Promise<string | null> {
  if ('test' in judge) return failingTests([judge.test], { folder, root });
  if ('fuzz' in judge) {
    const { kinds } = await fuzz({ seed: SEED, counts: { [judge.fuzz]: judge.count }, most: 1, warmUp: 0, source });
    return kinds.flatMap(({ findings }) => findings)[0]?.what ?? null;
  }
  const { neighbours: attack, seconds } = judge;
  const episode = await runEpisode({ attack, mode: 'direct', seconds, aloneSeconds: 2, source });
  return faultsOf(episode, { timing: true })[0] ?? null;
}

/**
 * Returns the first failure of the judging tests on unchanged sources, as text; null if all pass. A test that also
 * fails without a mutant proves nothing.
 */
export async function failsUnharmed(mutants: readonly GuardMutant[], source?: string): Promise<string | null> {
  const files = [...new Set(mutants.flatMap(({ judge }) => ('test' in judge ? [judge.test] : [])))];
  if (files.length === 0) return null;
  await using copy = copySources(source);
  return await failingTests(files, { folder: copy.folder, root: source === undefined ? ROOT : dirname(source) });
}

/**
 * Copies the tests to the copy, except for files with a mutant that are there already, and runs them in it, up to the
 * first failing test. Test files that cannot be loaded prove nothing about the guard.
 */
async function failingTests(
  files: readonly string[],
  { folder, root }: { readonly folder: string; readonly root: string },
): Promise<string | null> {
  for (const name of FOR_TESTS.filter((name) => existsSync(join(root, name))))
    cpSync(join(root, name), join(folder, name), { recursive: true, force: false });
  const { failed } = await runTests({ root: folder, files });
  return failed && `"${failed.name}" of ${files.join(', ')} fails`;
}

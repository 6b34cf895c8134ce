import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { plantMutant } from '../../test/faults/mutants.ts';
import { fuzz } from '../fuzz/fuzz.ts';
import { runEpisode } from '../neighbours/episode.ts';
import { faultsOf } from '../neighbours/verdict.ts';
import type { GuardMutant, Judge } from './guards.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** What a copy of the sources needs for running tests in it. */
const FOR_TESTS = ['test', 'faults', 'vitest.config.ts', 'tsconfig.json', 'PROTOCOL.md', 'README.md'];
const SEED = 1;
const REPORT = z.object({ numFailedTests: z.number(), numPassedTests: z.number() });

/** What noticed the mistake, as text; null when nothing did. `source`: where the sources lie, if not here; the tests beside them are taken. */
export async function caught(mutant: GuardMutant, source?: string): Promise<string | null> {
  await using planted = plantMutant(mutant, source);
  return await judgeWith(mutant.judge, { ...planted, root: source === undefined ? ROOT : dirname(source) });
}

async function judgeWith(
  judge: Judge,
  { folder, source, root }: { readonly folder: string; readonly source: string; readonly root: string },
): Promise<string | null> {
  if ('test' in judge) return failingTests(judge.test, { folder, root });
  if ('fuzz' in judge) {
    const { kinds } = await fuzz({ seed: SEED, counts: { [judge.fuzz]: judge.count }, most: 1, warmUp: 0, source });
    return kinds.flatMap(({ findings }) => findings)[0]?.what ?? null;
  }
  const { neighbours: attack, seconds } = judge;
  const episode = await runEpisode({ attack, mode: 'direct', seconds, aloneSeconds: 2, source });
  return faultsOf(episode, { timing: true })[0] ?? null;
}

/** Runs a file of tests in the copy. One that cannot even be loaded proves nothing about the guard. */
async function failingTests(
  file: string,
  { folder, root }: { readonly folder: string; readonly root: string },
): Promise<string | null> {
  for (const name of FOR_TESTS.filter((name) => existsSync(join(root, name))))
    cpSync(join(root, name), join(folder, name), { recursive: true, force: true });
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const report = join(folder, 'report.json');
  const where = ['--root', folder, '--project', 'direct', '--reporter=json', `--outputFile.json=${report}`];
  const child = spawn(process.execPath, [vitest, 'run', ...where, file], { cwd: folder, stdio: 'ignore' });
  await once(child, 'exit');
  const { numFailedTests: failed, numPassedTests: passed } = REPORT.parse(JSON.parse(readFileSync(report, 'utf8')));
  if (failed + passed === 0) throw new Error(`${file} did not run`);
  return failed > 0 ? `${failed} tests of ${file} fail` : null;
}

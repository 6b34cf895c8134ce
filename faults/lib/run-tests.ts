/** Runs test files of this project in a separate process, for programs that use tests as judges. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '..', '..');
const TEST = z.object({ status: z.string(), fullName: z.string(), failureMessages: z.array(z.string()) });
const REPORT = z.object({ testResults: z.array(z.object({ message: z.string(), assertionResults: z.array(TEST) })) });
/**
 * How often the tests are started at most. On a busy machine the test runner may give up a process before it has
 * started.
 */
const STARTS = 2;

type TestRun = {
  /** The folder that contains the tests and their sources: this project, or a copy of it. */
  readonly root?: string;
  /** The test files, relative to that folder. */
  readonly files: readonly string[];
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
};

type TestsRun = {
  /** The first test that failed: its name, and the message of its failure; null if none failed. */
  readonly failed: { readonly name: string; readonly message: string } | null;
};

/**
 * Runs test files in direct mode until a test fails. Throws if no test was completed, because files that cannot be
 * loaded prove nothing.
 */
export async function runTests(run: TestRun): Promise<TestsRun> {
  let why = '';
  for (let start = 0; start < STARTS; start++) {
    const results = await reportOf(run);
    const tests = results.flatMap(({ assertionResults }) => assertionResults);
    const failed = tests.find(({ status }) => status === 'failed');
    if (failed) return { failed: { name: failed.fullName, message: failed.failureMessages.join('\n') } };
    if (tests.some(({ status }) => status === 'passed')) return { failed: null };
    why = results.map(({ message }) => message).join('\n');
  }
  throw new Error(`${run.files.join(', ')} did not run: ${why}`);
}

async function reportOf({ root = ROOT, files, env = {} }: TestRun): Promise<z.infer<typeof REPORT>['testResults']> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-tests-'));
  try {
    const report = join(folder, 'report.json');
    const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
    const where = ['--root', root, '--project', 'direct*', '--reporter=json', `--outputFile.json=${report}`];
    const child = spawn(process.execPath, [vitest, 'run', '--bail', '1', ...where, ...files], {
      cwd: root,
      // With a planted mistake, a test may wait for something that never happens, and should then fail soon.
      env: { CALLBOARD_TEST_WAIT_MS: '15000', ...process.env, ...env },
      stdio: 'ignore',
    });
    await once(child, 'exit');
    return REPORT.parse(JSON.parse(readFileSync(report, 'utf8'))).testResults;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs test files of this project in a process of their own, for programs that use tests as judges. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '..', '..');
const TEST = z.object({ status: z.string(), fullName: z.string(), failureMessages: z.array(z.string()) });
const REPORT = z.object({ testResults: z.array(z.object({ assertionResults: z.array(TEST) })) });

export type TestRun = {
  /** The folder that has the tests and their sources: this project, or a copy of it. */
  readonly root?: string;
  /** The test files, below that folder. */
  readonly files: readonly string[];
  /** Environment variables besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
};

export type TestsRun = {
  /** The first test that failed: its name, and the message of its failure; null if none failed. */
  readonly failed: { readonly name: string; readonly message: string } | null;
};

/**
 * Runs test files in direct mode up to the first failing test. Throws if no test ran to its end: files that cannot be
 * loaded prove nothing.
 */
export async function runTests({ root = ROOT, files, env = {} }: TestRun): Promise<TestsRun> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-tests-'));
  try {
    const report = join(folder, 'report.json');
    const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
    const where = ['--root', root, '--project', 'direct*', '--reporter=json', `--outputFile.json=${report}`];
    const child = spawn(process.execPath, [vitest, 'run', '--bail', '1', ...where, ...files], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: 'ignore',
    });
    await once(child, 'exit');
    const { testResults } = REPORT.parse(JSON.parse(readFileSync(report, 'utf8')));
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
    const failed = tests.find(({ status }) => status === 'failed');
    if (failed) return { failed: { name: failed.fullName, message: failed.failureMessages.join('\n') } };
    if (!tests.some(({ status }) => status === 'passed')) throw new Error(`${files.join(', ')} did not run`);
    return { failed: null };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

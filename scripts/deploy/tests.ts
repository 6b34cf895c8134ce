/** Runs the tests of deploy/ and says which passed and which were skipped. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { output, type Say } from './steps.ts';

const REPORT = z.object({
  testResults: z.array(
    z.object({ name: z.string(), assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })) }),
  ),
});
const TESTS = ['test/deploy/', 'test/cli/activated-socket.test.ts'];

/** Runs the tests. Throws an error with their output if one fails. */
export function runTests(root: string, say: Say): void {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-tests-'));
  const report = join(folder, 'report.json');
  try {
    const args = ['run', '--project', 'direct', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    output(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args, ...TESTS], root);
    for (const { name, assertionResults } of REPORT.parse(JSON.parse(readFileSync(report, 'utf8'))).testResults) {
      const passed = assertionResults.filter(({ status }) => status === 'passed').length;
      const left = assertionResults.filter(({ status }) => status !== 'passed').length;
      say(`${name.slice(name.indexOf('test/'))}: ${passed} passed${left > 0 ? `, ${left} left out` : ''}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * `npm test`: checks for the programs that tests need, runs every test once, and ends with the count as `N passed, N
 * failed`.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * A program that tests start: the variable that names its path, its default paths, and its Debian package. Add a row
 * for each further program.
 */
type Need = { readonly variable: string; readonly places: readonly string[]; readonly debian: string };
const NEEDS: readonly Need[] = [
  {
    variable: 'CALLBOARD_TEST_CHROMIUM',
    places: ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
    debian: 'chromium',
  },
  {
    variable: 'CALLBOARD_TEST_REDIS',
    places: ['/usr/bin/redis-server', '/usr/local/bin/redis-server'],
    debian: 'redis-server',
  },
  // The demo prints commands with curl to try, and the test of the demo runs them.
  { variable: 'CALLBOARD_TEST_CURL', places: ['/usr/bin/curl', '/usr/local/bin/curl'], debian: 'curl' },
];

const ROOT = join(import.meta.dirname, '..');
const REPORT = join(ROOT, '.cache', 'test-report.json');
/** The path of the file from which scripts read the counts. */
const COUNT = join(ROOT, '.cache', 'test-count.txt');

const write = (text: string): void => void process.stdout.write(`${text}\n`);

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isThere({ variable, places }: Need): boolean {
  return process.env[variable] !== undefined || places.some(isRunnable);
}

function install(missing: readonly Need[]): void {
  const packages = missing.map(({ debian }) => debian);
  const line = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(' ')}`;
  if (process.getuid?.() === 0 && isRunnable('/usr/bin/apt-get')) {
    write(`Tests need ${packages.join(', ')}: ${line}`);
    spawnSync('sh', ['-c', line], { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
  }
  if (missing.every(isThere)) return;
  write(`Tests need ${packages.join(', ')}. On Debian or Ubuntu, as root:\n  ${line}`);
  process.exit(1);
}

/** The result of a test file, with times in milliseconds. */
type Suite = {
  readonly name: string;
  readonly status: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly assertionResults: readonly { readonly status: string }[];
};

/** The number of test files that are listed with their time at the end, the slowest first. */
const SLOWEST = 25;

/** Counts the tests that passed and failed. A file that could not be loaded counts as one failed test. */
function count(suites: readonly Suite[]): { readonly passed: number; readonly failed: number } {
  const of = (status: string): number =>
    suites.flatMap(({ assertionResults }) => assertionResults).filter((test) => test.status === status).length;
  const broken = suites.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  return { passed: of('passed'), failed: of('failed') + broken.length };
}

function readSuites(): readonly Suite[] {
  try {
    return JSON.parse(readFileSync(REPORT, 'utf8')).testResults;
  } catch {
    return [];
  }
}

const missing = NEEDS.filter((need) => !isThere(need));
if (missing.length > 0) install(missing);
mkdirSync(join(ROOT, '.cache'), { recursive: true });
rmSync(REPORT, { force: true });
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`];
const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', ...reporters, ...process.argv.slice(2)], {
  stdio: 'inherit',
  cwd: ROOT,
});
const suites = readSuites();
const timed = suites.map(({ name, startTime, endTime }) => ({ name: relative(ROOT, name), ms: endTime - startTime }));
const slowest = timed.toSorted((one, other) => other.ms - one.ms).slice(0, SLOWEST);
write('The slowest files, in seconds:');
for (const { name, ms } of slowest) write(`${(ms / 1000).toFixed(1).padStart(8)} ${name}`);
const { passed, failed } = count(suites);
const line = `${passed} passed, ${failed} failed`;
writeFileSync(COUNT, `${line}\n`);
write(line);
process.exitCode = status === 0 && failed === 0 && passed > 0 ? 0 : 1;

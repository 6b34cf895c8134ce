/**
 * `npm test`: checks for the programs that tests need, runs every test once, and ends with the count as `N passed, N
 * failed`. With CI=true, a few files that failed run once more, alone, and are named even if they pass then. `--quick`:
 * only the tests that a change most likely breaks, in direct mode.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * A program that tests start: the variable that names its path, its default paths, and its Debian package. Add a row
 * for each further program.
 */
type Need = { readonly variable: string; readonly places: readonly string[]; readonly debian: string };
const REDIS: Need = {
  variable: 'CALLBOARD_TEST_REDIS',
  places: ['/usr/bin/redis-server', '/usr/local/bin/redis-server'],
  debian: 'redis-server',
};
const NEEDS: readonly Need[] = [
  REDIS,
  {
    variable: 'CALLBOARD_TEST_CHROMIUM',
    places: ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
    debian: 'chromium',
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
    const run = (command: string): void =>
      void spawnSync('sh', ['-c', command], {
        stdio: 'inherit',
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      });
    write(`Tests need ${packages.join(', ')}: ${line}`);
    run(line);
    // Chromium without windows takes half the time. Not every system has the package, and the tests run without it.
    if (packages.includes('chromium')) run('apt-get install -y --no-install-recommends chromium-headless-shell');
  }
  if (missing.every(isThere)) return;
  write(`Tests need ${packages.join(', ')}. On Debian or Ubuntu, as root:\n  ${line}`);
  process.exit(1);
}

/**
 * What `--quick` runs: all that starts no process, no browser and no second relay, which takes a few milliseconds a test.
 */
const QUICK = [
  ...['architecture', 'schema', 'docs-paths', 'protocol'].map((name) => `test/${name}`),
  ...['console', 'core', 'gateway', 'graphql', 'metrics', 'rest', 'web'].map((folder) => `test/${folder}/`),
  ...['contract/memory', 'contract/audit.memory', 'contract/shares.memory', 'contract/spill.'].map(
    (name) => `test/${name}`,
  ),
];
/** Files of these folders that take longer than all others there, or open relays over Redis. */
const NOT_QUICK = [
  'test/gateway/{closing,fuzz}.test.ts',
  'test/metrics/series.test.ts',
  'test/rest/openapi-bounds.test.ts',
];

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

/**
 * The greatest number of files that run again in CI. A fault of the project mostly fails again, or in more files; what
 * passes alone afterwards depends on time, and is printed so that someone mends it.
 */
const AGAIN = 3;

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

/** Runs vitest with these arguments. `isGreen`: it ended well. `suites` are empty if it died. */
function run(args: readonly string[]): { readonly isGreen: boolean; readonly suites: readonly Suite[] } {
  rmSync(REPORT, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`];
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const { status } = spawnSync(process.execPath, [vitest, 'run', ...reporters, ...args], {
    stdio: 'inherit',
    cwd: ROOT,
  });
  return { isGreen: status === 0, suites: readSuites() };
}

/** Runs the failed files again, one at a time, and returns the result with theirs in place of the first. */
function runAgain({ isGreen, suites }: ReturnType<typeof run>): ReturnType<typeof run> {
  const failed = new Set(suites.filter(({ status }) => status === 'failed').map(({ name }) => name));
  if (isGreen || failed.size === 0 || failed.size > AGAIN) return { isGreen, suites };
  const names = [...failed].map((name) => relative(ROOT, name));
  write(`Failed, and run again alone: ${names.join(', ')}`);
  const again = run([...names, '--no-file-parallelism']);
  for (const name of failed) {
    const passes = again.suites.some((suite) => suite.name === name && suite.status === 'passed');
    if (passes) write(`Unreliable: ${relative(ROOT, name)} failed first and passed alone.`);
  }
  return { isGreen: again.isGreen, suites: [...suites.filter(({ name }) => !failed.has(name)), ...again.suites] };
}

const isQuick = process.argv.includes('--quick');
const given = process.argv.slice(2).filter((word) => word !== '--quick');
const quickly = ['--project', 'direct*', ...QUICK, ...NOT_QUICK.flatMap((glob) => ['--exclude', glob])];
const missing = (isQuick ? [REDIS] : NEEDS).filter((need) => !isThere(need));
if (missing.length > 0) install(missing);
mkdirSync(join(ROOT, '.cache'), { recursive: true });
const first = run(isQuick ? [...quickly, ...given] : given);
const { isGreen, suites } = process.env['CI'] === 'true' ? runAgain(first) : first;
const timed = suites.map(({ name, startTime, endTime }) => ({ name: relative(ROOT, name), ms: endTime - startTime }));
const slowest = timed.toSorted((one, other) => other.ms - one.ms).slice(0, SLOWEST);
write('The slowest files, in seconds:');
for (const { name, ms } of slowest) write(`${(ms / 1000).toFixed(1).padStart(8)} ${name}`);
const { passed, failed } = count(suites);
const line = `${passed} passed, ${failed} failed`;
writeFileSync(COUNT, `${line}\n`);
write(line);
process.exitCode = isGreen && failed === 0 && passed > 0 ? 0 : 1;

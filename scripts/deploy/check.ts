/**
 * `npm run deploy:check` builds and runs the image, runs the tests of deploy/, and restarts two relays behind each
 * proxy under load. For each step it prints what was done, or what this machine lacks for it. `--without-image` skips
 * the image, which takes minutes; the relays then run from this checkout.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { find } from '../../test/deploy/kit/programs.ts';
import { isInstalled, PROXIES, type ProxyName } from '../../test/deploy/kit/proxies.ts';
import { buildImage, type BuiltImage, discardImages } from './image.ts';
import { ofCheckout } from './relay-process.ts';
import { rollingRestart } from './rolling-restart.ts';
import { ofImage, tryImage } from './run-image.ts';
import { CannotRun, output, type Say, Steps } from './steps.ts';

// Runs the tests of deploy/ and prints which passed and which were skipped.

const REPORT = z.object({
  testResults: z.array(
    z.object({ name: z.string(), assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })) }),
  ),
});
const TESTS = ['test/deploy/', 'test/cli/activated-socket.test.ts'];

/** Runs the tests. Throws an error with their output if one fails. */
function runTests(root: string, say: Say): void {
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

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NAMES = Object.keys(PROXIES) as ProxyName[];
/** The programs that the tests of deploy/ use if they are installed. */
const PROGRAMS = ['nginx', 'haproxy', 'caddy', 'promtool', 'kubectl', 'systemd-analyze', 'redis-server'];

const { values } = parseArgs({ options: { 'without-image': { type: 'boolean', default: false } } });
const steps = new Steps();
const folder = mkdtempSync(join(tmpdir(), 'callboard-image-'));
let image: BuiltImage | null = null;
try {
  if (!values['without-image']) {
    image = await steps.run('image: build deploy/Dockerfile', async (say) => {
      const built = buildImage(folder, say);
      say(`size: ${built.size}`);
      return built;
    });
    const built = image;
    if (built) await steps.run('image: run it', (say) => tryImage(built, say));
  }
  await steps.run(
    'tests of deploy/: proxies, systemd, Kubernetes, Prometheus, Grafana, sockets of a service manager',
    async (say) => {
      for (const name of PROGRAMS) if (find(name) === null) say(`${name} is not installed: its tests are left out`);
      runTests(ROOT, say);
    },
  );
  const serve = image ? ofImage(image) : ofCheckout;
  for (const name of NAMES)
    await steps.run(`rolling restart behind ${name}, relays of the ${image ? 'image' : 'checkout'}`, async (say) => {
      if (!isInstalled(name)) throw new CannotRun(`${name} is not installed`);
      if (find('redis-server') === null) throw new CannotRun('redis-server is not installed');
      const { outcomes, refusals, ranTwice, exits, viewers } = await rollingRestart(name, { serve, say });
      say(`outcomes ${JSON.stringify(outcomes)}, repeated after ${JSON.stringify(refusals)}, run twice: ${ranTwice}`);
      say(`exit codes ${exits.join(', ')}; viewers ${JSON.stringify(viewers)}`);
      if (Object.keys(outcomes).some((outcome) => outcome !== 'completed'))
        throw new Error('not every command completed');
      if (ranTwice > 0 || exits.some((code) => code !== 0)) throw new Error('a command ran twice, or a stop failed');
      if (viewers.some(({ reconnects, gaps }) => gaps < 1 || gaps !== reconnects))
        throw new Error('a viewer missed its gap');
    });
} finally {
  if (image) discardImages(folder);
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = steps.summary();

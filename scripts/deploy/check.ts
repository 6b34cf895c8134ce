/**
 * `npm run deploy:check`: builds the image and runs it, runs the tests of deploy/, and restarts two relays behind each
 * proxy under load. It says of each step what it did, or what this machine lacks for it. `--without-image` skips the
 * image, which takes minutes; it then restarts relays of this checkout.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { find } from '../../test/deploy/kit/programs.ts';
import { isInstalled, PROXIES, type ProxyName } from '../../test/deploy/kit/proxies.ts';
import { buildImage, discardImages, type BuiltImage } from './image.ts';
import { ofCheckout } from './relay-process.ts';
import { rollingRestart } from './rolling-restart.ts';
import { ofImage, tryImage } from './run-image.ts';
import { CannotRun, Steps } from './steps.ts';
import { runTests } from './tests.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NAMES = Object.keys(PROXIES) as ProxyName[];
/** The programs that the tests of deploy/ use where they are installed. */
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

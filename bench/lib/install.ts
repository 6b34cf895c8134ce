/** Installs the npm packages of the peers, which are the products that the relay is compared with. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Installs the peers if they are missing. Throws if that fails. */
export function installPeers(say: (text: string) => void): void {
  const folder = fileURLToPath(new URL('..', import.meta.url));
  if (existsSync(new URL('../node_modules/.package-lock.json', import.meta.url))) return;
  say('installing the peers into bench/node_modules (npm ci), once');
  const { status } = spawnSync('npm', ['ci'], { cwd: folder, stdio: ['ignore', 2, 'inherit'] });
  if (status !== 0) throw new Error('npm ci in bench/ failed: nothing can be compared.');
}

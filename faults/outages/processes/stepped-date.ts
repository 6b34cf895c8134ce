/**
 * Is loaded into each relay of a fault run before the relay itself. At SIGUSR2, it sets the wall clock ahead by the
 * time in a file. Elapsed times and timers do not change.
 */
import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** The environment variable with the path of that file, which contains a number of milliseconds. */
export const CLOCK_FILE = 'FAULTS_CLOCK_FILE';

const path = process.env[CLOCK_FILE];
if (path !== undefined && isMainThread) {
  const now = Date.now.bind(Date);
  let aheadMs = 0;
  Date.now = () => now() + aheadMs;
  process.on('SIGUSR2', () => (aheadMs = Number(readFileSync(path, 'utf8'))));
}

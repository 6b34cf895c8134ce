/**
 * Loaded into each relay of a fault run before the relay itself: at SIGUSR2 the clock of the day is as far ahead as a
 * file says. Elapsed times and timers stay as they are.
 */
import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** The variable of the environment that has the path of the file, with a number of milliseconds. */
export const CLOCK_FILE = 'FAULTS_CLOCK_FILE';

const path = process.env[CLOCK_FILE];
if (path !== undefined && isMainThread) {
  const now = Date.now.bind(Date);
  let aheadMs = 0;
  Date.now = () => now() + aheadMs;
  process.on('SIGUSR2', () => (aheadMs = Number(readFileSync(path, 'utf8'))));
}

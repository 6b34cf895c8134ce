/**
 * Loaded into each relay of a fault run before the relay itself: collects garbage, and logs the memory of the process and
 * the long turns of its event loop. What remains after a collection is what the relay holds; the resident memory shows
 * when V8 last collected.
 */
import { isMainThread } from 'node:worker_threads';
import { createTurnMeter } from '../../lib/cost-probe.ts';
import { openLog } from '../log/log.ts';

/** The interval of the samples in milliseconds. A collection stops the relay for up to 0.1 s. */
const SAMPLE_MS = 5_000;
/** The interval at which the turns of the event loop are read, and from when on they are logged, in milliseconds. */
const TURNS_MS = 500;
const LONG_MS = { turn: 25, stalled: 500 };

/** The variable of the environment that has a `MemoryLogOptions` as JSON. */
export const MEMORY_LOG = 'FAULTS_MEMORY_LOG';
export type MemoryLogOptions = {
  readonly folder: string;
  readonly name: string;
  readonly boot: number;
  /** Whether the relay keeps the records of commands itself, not in Redis. */
  readonly keepsRecords: boolean;
};

const given = process.env[MEMORY_LOG];
if (given !== undefined && isMainThread) {
  const { folder, name, boot, keepsRecords }: MemoryLogOptions = JSON.parse(given);
  // A process that does not become ready has the number of the next boot.
  const log = openLog({ folder, proc: name, boot: `${boot}-${process.pid}` });
  const of = `${name}.${boot}`;
  const meter = createTurnMeter();
  let readAt = performance.now();
  const readTurns = (): void => {
    const { worstMs: turnMs, stalledMs: timersMs } = meter.take();
    // The meter does not see a stall that begins right after it was read.
    const stalledMs = Math.max(timersMs, performance.now() - readAt - TURNS_MS);
    readAt = performance.now();
    if (turnMs >= LONG_MS.turn || stalledMs >= LONG_MS.stalled) log.write({ event: 'turns', of, turnMs, stalledMs });
  };
  const sample = (): void => {
    readTurns();
    if (!globalThis.gc) throw new Error('the relay must be started with --expose-gc');
    const resident = process.memoryUsage.rss();
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    log.write({ event: 'memory', of, resident, live: heapUsed + external, keepsRecords });
    // The collection is no work of the relay.
    meter.take();
  };
  sample();
  setInterval(readTurns, TURNS_MS).unref();
  setInterval(sample, SAMPLE_MS).unref();
}

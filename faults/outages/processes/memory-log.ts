/**
 * Is loaded into each relay of a fault run before the relay itself. It collects garbage, and logs the memory of the
 * process and long turns of its event loop. The memory after a collection is what the relay holds, while the resident
 * memory depends on when V8 last collected.
 */
import { isMainThread } from 'node:worker_threads';
import { createTurnMeter } from '../../lib/cost-probe.ts';
import { openLog } from '../log/log.ts';

/** The interval of the samples in milliseconds. It is long, because a collection stops the relay for up to 0.1 s. */
const SAMPLE_MS = 5_000;
/**
 * The interval at which the turns of the event loop are read, and the durations from which they are logged, in
 * milliseconds.
 */
const TURNS_MS = 500;
const LONG_MS = { turn: 25, stalled: 500 };

/** The environment variable with a `MemoryLogOptions` as JSON. */
export const MEMORY_LOG = 'FAULTS_MEMORY_LOG';
export type MemoryLogOptions = {
  readonly folder: string;
  readonly name: string;
  readonly boot: number;
  /** Whether the relay itself keeps the records of commands, instead of Redis. */
  readonly keepsRecords: boolean;
};

const given = process.env[MEMORY_LOG];
if (given !== undefined && isMainThread) {
  const { folder, name, boot, keepsRecords }: MemoryLogOptions = JSON.parse(given);
  // The process id is included, because a process that does not become ready has the same boot number as the next one.
  const log = openLog({ folder, proc: name, boot: `${boot}-${process.pid}` });
  const of = `${name}.${boot}`;
  const meter = createTurnMeter();
  let readAt = performance.now();
  const readTurns = (): void => {
    const { worstMs: turnMs, stalledMs: timersMs } = meter.take();
    // The meter does not notice a stall that begins right after it was read.
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
    // Reset here, because the collection is not the relay's work.
    meter.take();
  };
  sample();
  setInterval(readTurns, TURNS_MS).unref();
  setInterval(sample, SAMPLE_MS).unref();
}

/**
 * Loaded into each relay of a fault run before the relay itself: collects garbage and logs the memory of the process.
 * What remains after a collection is what the relay holds. The resident memory also shows when V8 last collected.
 */
import { isMainThread } from 'node:worker_threads';
import { openLog } from '../log/log.ts';

/** The interval of the samples in milliseconds. A collection stops the relay for up to 0.1 s. */
const SAMPLE_MS = 5_000;

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
  const sample = (): void => {
    if (!globalThis.gc) throw new Error('the relay must be started with --expose-gc');
    const resident = process.memoryUsage.rss();
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    log.write({ event: 'memory', of, resident, live: heapUsed + external, keepsRecords });
  };
  sample();
  setInterval(sample, SAMPLE_MS).unref();
}

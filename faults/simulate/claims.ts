/** What simulations must reach, and the code that they have not reached: nothing there is tested by them. */
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { relative, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { STORES, type Setting, type StoreName, type WorkloadName } from './workloads.ts';

/** What the runs of each store must have counted, besides each of its faults, as `Relays.count` names it. */
const OF_STORE: Readonly<Record<StoreName, readonly string[]>> = {
  owned: [
    'snapshot',
    'log: took over',
    'log: a snapshot was written',
    'log: facts are not recorded: the log does not answer',
    'log: the lease of this relay cannot be renewed',
    'log: the log has lost what it had confirmed: it follows',
    'log: the logs of partitions are out of reach: answers wait',
    'log: Redis has no memory for more: nothing new is admitted',
    'log: Redis has memory again',
  ],
  directory: [
    ...['always', 'off', '20', '100', '1000'].map((sync) => `DATA_SYNC: ${sync}`),
    'away: clean',
    'away: ended',
    'away: lost',
    'compared with the directory',
    'log: a snapshot was written',
    'log: records are missing: commands that had not ended end as unknown',
    'log: the disk of the data directory is full: nothing new is admitted',
    'log: the disk of the data directory has room again',
    'log: what was written last is not whole: it was cut off',
  ],
};

/** What the runs of each workload must have counted: the ends of calls, and the refusals of acts. */
const OF_WORKLOAD: Readonly<Record<WorkloadName, readonly string[]>> = {
  calls: [
    'call: completed',
    'call: cancelled',
    'call: expired connect_timeout',
    'call: failed handler_failed',
    'call: outcome_unknown instance_replaced',
    'call: outcome_unknown response_timeout',
    'cancel: requested',
    'cancel: too_late',
    'link lost: connection_lost',
    'log: link opened',
    'log: link closed',
  ],
  events: [],
  sites: [],
  store: ['admit: admitted', 'admit: store_full', 'cancel: settled'],
};

/** Returns what a long series of runs must have counted. */
export function claimsOf({ acts, store }: Setting): readonly string[] {
  return [...STORES[store].faults.map(({ name }) => `fault: ${name}`), ...OF_STORE[store], ...OF_WORKLOAD[acts]];
}

/** Returns what was never counted. */
export function unmet(claims: readonly string[], seen: Readonly<Record<string, number>>): readonly string[] {
  return claims.filter((what) => !seen[what]);
}

// Finds the code of the product that no run has reached.

const ROOT = join(import.meta.dirname, '..', '..');
/** How many characters of a place are shown. */
const SHOWN_CHARS = 100;

/** A place that was not reached. `text`: how it begins, in one line. */
export type Unreached = { readonly file: string; readonly line: number; readonly text: string };

/** Counts what is reached in files below `src`, from `begin` on. Slows the process down. */
export class Reached {
  readonly #session = new Session();
  readonly #files: readonly string[];

  /** `files`: their paths below `src`. */
  constructor(files: readonly string[]) {
    this.#files = files;
  }

  async begin(): Promise<void> {
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true });
  }

  /** Returns the functions and branches that were not reached, in order. Those within another one are not listed. */
  async end(): Promise<readonly Unreached[]> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    this.#session.disconnect();
    return this.#files.flatMap((file) => {
      const path = join(ROOT, 'src', file);
      const found = result.find(({ url }) => url.startsWith('file:') && fileURLToPath(url) === path);
      if (!found) return [{ file, line: 1, text: 'the file was not loaded' }];
      const text = readFileSync(path, 'utf8');
      const ranges = found.functions.flatMap(({ ranges }) => ranges).filter(({ count }) => count === 0);
      const outer = ranges.filter(
        (one) =>
          !ranges.some(
            (other) => other !== one && other.startOffset <= one.startOffset && other.endOffset >= one.endOffset,
          ),
      );
      return outer
        .toSorted((a, b) => a.startOffset - b.startOffset)
        .map(({ startOffset, endOffset }) => ({
          file: relative(join(ROOT, 'src'), path),
          line: text.slice(0, startOffset).split('\n').length,
          text: text.slice(startOffset, endOffset).replaceAll(/\s+/g, ' ').trim().slice(0, SHOWN_CHARS),
        }));
    });
  }
}

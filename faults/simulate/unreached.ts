/** Finds the code of the stores that no run has reached, and compares it with the list of what none can reach. */
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unreachableIn, type Unreachable } from './unreachable.ts';
import { STORES, type StoreName } from './workloads.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** A place that was not reached. `file`: its path below src. `text`: the line in which it begins. */
type Unreached = { readonly file: string; readonly line: number; readonly text: string };

/**
 * Returns what is wrong with the list of a store after a long series of runs, as texts: places that are not in it and
 * that no run has reached, and places in it that one has reached, or that are there no more. Rare ones may be reached.
 */
export function faultsOfList(unreached: readonly Unreached[], listed: readonly Unreachable[]): readonly string[] {
  const isOf = (place: Unreached, one: Unreachable): boolean => place.file === one.file && place.text === one.text;
  const missing = unreached.filter((place) => !listed.some((one) => isOf(place, one)));
  const reached = listed.filter((one) => !one.isRare && !unreached.some((place) => isOf(place, one)));
  return [
    ...missing.map(({ file, line, text }) => `no run has reached ${file}:${line}  ${text}`),
    ...reached.map(({ file, text }) => `listed as out of reach, and reached or gone: ${file}  ${text}`),
  ];
}

/** Counts what is reached in the files of a store, from `begin` on. Slows the process down. */
export class Reached {
  readonly #session = new Session();
  readonly #store: StoreName;

  constructor(store: StoreName) {
    this.#store = store;
  }

  async begin(): Promise<void> {
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true });
  }

  /** Returns what is wrong with the list of what no run can reach. */
  async end(): Promise<readonly string[]> {
    return faultsOfList(await this.#unreached(), unreachableIn(this.#store));
  }

  /** Returns the functions and branches that were not reached, in order. Those within another one are not listed. */
  async #unreached(): Promise<readonly Unreached[]> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    this.#session.disconnect();
    const { files } = STORES[this.#store];
    return files.flatMap((file) => {
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
        .map(({ startOffset }) => ({ file, ...placeOf(text, startOffset) }));
    });
  }
}

/** Returns the line in which a place begins, and its number. */
function placeOf(text: string, offset: number): Omit<Unreached, 'file'> {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, text: text.split('\n')[before.length - 1]?.trim() ?? '' };
}

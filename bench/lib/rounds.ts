/**
 * Measures the contenders of a comparison in turn, round by round, so that other load on the machine affects all of
 * them equally.
 */
import { medians, type Sample } from './numbers.ts';
import type { Row, RowKind } from './report.ts';

/**
 * How long a load runs: until this many milliseconds have passed or, if given, until it has made `count` requests or
 * calls.
 */
export type Length = { readonly ms: number; readonly count?: number };

/** The number of rounds, and the lengths of the warm-up and of the measurement in each round. */
type Pace = {
  readonly rounds: number;
  /**
   * The warm-up of a load of requests or calls. It ends after a number of requests, because V8 compiles code that runs
   * often: after a fixed time, a slow server would still be compiling. The time limit is for servers that would take
   * minutes.
   */
  readonly warm: Length;
  /** The warm-up of any other load, in milliseconds. */
  readonly warmMs: number;
  readonly timedMs: number;
};

/** The pace of a full run: three rounds, each with its own warm-up. */
export const PACE: Pace = { rounds: 3, warm: { count: 30_000, ms: 15_000 }, warmMs: 4000, timedMs: 1200 };
/** The pace of `--quick`, which only checks that each benchmark runs. */
export const QUICK: Pace = { rounds: 1, warm: { count: 1000, ms: 2000 }, warmMs: 300, timedMs: 500 };

/** The options of one run of a suite. */
export type Run = {
  readonly pace: Pace;
  readonly quick: boolean;
  /** Whether to write the results into docs/measurements.md; the suite `growth` writes them into its own folder too. */
  readonly write: boolean;
  /** Whether the row of this name is to be measured. */
  wanted(name: string): boolean;
  /** Reports progress to the user. */
  say(text: string): void;
};

/** A contender of a comparison. `prepare` starts it. If that fails, the contender's row states the reason. */
export type Contender<T> = {
  readonly name: string;
  readonly kind: RowKind;
  prepare(): Promise<T>;
};

export type Ready<T> = { readonly contender: Contender<T>; readonly it: T; readonly note: string };

/** Collects the measurements of each contender. The row of a contender that failed states the reason. */
export class Results {
  readonly #rounds = new Map<string, Sample[]>();
  readonly #failed = new Map<string, string>();
  readonly #notes = new Map<string, string>();

  add(name: string, sample: Sample): void {
    this.#rounds.set(name, [...(this.#rounds.get(name) ?? []), sample]);
  }

  fail(name: string, error: unknown): void {
    if (!this.#failed.has(name)) this.#failed.set(name, reasonOf(error));
  }

  note(name: string, text: string): void {
    this.#notes.set(name, text);
  }

  failed(name: string): boolean {
    return this.#failed.has(name);
  }

  row({ name, kind }: { readonly name: string; readonly kind: RowKind }): Row {
    const reason = this.#failed.get(name);
    const rounds = this.#rounds.get(name) ?? [];
    if (reason !== undefined || rounds.length === 0)
      return { name, kind, values: null, note: reason ?? 'was not asked for' };
    return { name, kind, values: medians(rounds), note: this.#notes.get(name) ?? '' };
  }
}

/**
 * Calls `measure` for each contender in turn, `rounds` times. Each round starts with another contender. A contender
 * that fails is not measured again.
 */
export async function alternate<T extends { readonly name: string }>(
  all: readonly T[],
  { rounds, results }: { readonly rounds: number; readonly results: Results },
  measure: (one: T) => Promise<Sample>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const first = all.length === 0 ? 0 : round % all.length;
    for (const one of [...all.slice(first), ...all.slice(0, first)]) {
      if (results.failed(one.name)) continue;
      try {
        results.add(one.name, await measure(one));
      } catch (error) {
        results.fail(one.name, error);
      }
    }
  }
}

export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split('\n')[0] ?? '').slice(0, 160);
}

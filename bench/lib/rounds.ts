/** Measures the contenders in turn, round by round, so that other load on the machine affects all of them alike. */
import { medians, type Sample } from './numbers.ts';
import type { Row, RowKind } from './report.ts';

/** How long a load runs: until this many milliseconds are over, or until it has made `count` requests or calls. */
export type Length = { readonly ms: number; readonly count?: number };

/** The number of rounds, and the lengths of the warm-up and of the measurement in each round. */
type Pace = {
  readonly rounds: number;
  /**
   * The warm-up of a load of requests or calls. It ends by their number, because V8 compiles what runs often, and a slow
   * server would still compile when a time is over. The time is for servers that would take minutes.
   */
  readonly warm: Length;
  /** The warm-up of any other load. */
  readonly warmMs: number;
  readonly timedMs: number;
};

/** The pace of a full run: three rounds, each with its own warm-up. */
export const PACE: Pace = { rounds: 3, warm: { count: 30_000, ms: 15_000 }, warmMs: 4000, timedMs: 1200 };
/** The pace of `--quick`, which only shows that each benchmark runs. */
export const QUICK: Pace = { rounds: 1, warm: { count: 1000, ms: 2000 }, warmMs: 300, timedMs: 500 };

/** The options of a suite's run. */
export type Run = {
  readonly pace: Pace;
  readonly quick: boolean;
  /** Whether to write the results: into docs/measurements.md, and those of the suite `growth` into its own folder. */
  readonly write: boolean;
  /** Whether to measure the row of this name. */
  wanted(name: string): boolean;
  /** Reports progress to the user. */
  say(text: string): void;
};

/** One contender of a comparison. `prepare` starts it and may fail; its row then gives the reason. */
export type Contender<T> = {
  readonly name: string;
  readonly kind: RowKind;
  prepare(): Promise<T>;
};

export type Ready<T> = { readonly contender: Contender<T>; readonly it: T; readonly note: string };

/** Collects the measurements of each contender. A contender that failed has a row with the reason. */
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
 * Runs `measure` for each contender in turn, `rounds` times. Each round starts with another contender. A contender that
 * fails is not measured again.
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

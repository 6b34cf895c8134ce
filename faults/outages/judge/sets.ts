import { answersOf, wasRefused, type Case, type Evidence } from './evidence.ts';

/** Sets of commands, as Jepsen's checkers tell them apart. */
export type Sets = {
  /** What callers tried. */
  readonly attempts: readonly Case[];
  /** What a relay told to be admitted. */
  readonly ok: readonly Case[];
  /** Admitted, and no record at the end. */
  readonly lost: readonly Case[];
  /** A record that nobody tried to make, or whose every invocation was refused. */
  readonly unexpected: readonly Case[];
  /** A record of which its callers never heard for certain. */
  readonly recovered: readonly Case[];
  /** Tried, never heard of for certain, and no record: it may not have arrived. */
  readonly unknown: readonly Case[];
  readonly refused: readonly Case[];
  /** Ended, and then reported again otherwise. */
  readonly late: readonly Case[];
  /** Handlers began more than once. */
  readonly duplicates: readonly Case[];
};

export function setsOf({ cases, final }: Evidence): Sets {
  const all = [...cases.values()];
  const tried = (one: Case): boolean => one.waits.length > 0;
  const ok = (one: Case): boolean => answersOf(one).length > 0;
  const read = (one: Case): boolean => final(one) !== null;
  return {
    attempts: all.filter(tried),
    ok: all.filter(ok),
    lost: all.filter((one) => ok(one) && !read(one)),
    unexpected: all.filter((one) => read(one) && (!tried(one) || wasRefused(one))),
    recovered: all.filter((one) => read(one) && tried(one) && !ok(one) && !wasRefused(one)),
    unknown: all.filter((one) => tried(one) && !ok(one) && !read(one) && !wasRefused(one)),
    refused: all.filter(wasRefused),
    late: all.filter((one) => (final(one)?.late ?? 0) > 0),
    duplicates: all.filter(({ runs }) => runs.length > 1),
  };
}

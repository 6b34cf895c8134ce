import { answersOf, wasRefused, type Case, type Evidence } from './evidence.ts';

/** Sets of commands, as Jepsen's checkers distinguish them. */
export type Sets = {
  /** Attempted by callers. */
  readonly attempts: readonly Case[];
  /** Reported by a relay as admitted. */
  readonly ok: readonly Case[];
  /** Admitted, without a record at the end. */
  readonly lost: readonly Case[];
  /** A record that nobody tried to create, or whose invocations were all refused. */
  readonly unexpected: readonly Case[];
  /** A record whose callers never got a certain answer. */
  readonly recovered: readonly Case[];
  /** Attempted, never certainly answered, and without a record: it may not have arrived. */
  readonly unknown: readonly Case[];
  readonly refused: readonly Case[];
  /** Ended, and later reported with another end. */
  readonly late: readonly Case[];
  /** Handlers started more than once. */
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

/** Sorts the commands of a run into the sets by which Jepsen's checkers judge. */
import { answersOf, wasRefused, type Case, type Evidence } from './evidence.ts';

/** The sets of commands, as Jepsen's checkers distinguish them. */
export type Sets = {
  /** The commands that callers attempted. */
  readonly attempts: readonly Case[];
  /** The commands that a relay reported as admitted. */
  readonly ok: readonly Case[];
  /** The commands that were admitted but have no record at the end. */
  readonly lost: readonly Case[];
  /**
   * The commands that have a record although no caller attempted them, or although all their invocations were refused.
   */
  readonly unexpected: readonly Case[];
  /** The commands with a record whose callers never received a certain answer. */
  readonly recovered: readonly Case[];
  /** The attempted commands with neither a certain answer nor a record. Their requests may not have arrived. */
  readonly unknown: readonly Case[];
  readonly refused: readonly Case[];
  /** The commands for which another end was reported after they had ended. */
  readonly late: readonly Case[];
  /** The commands whose handler was started more than once. */
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

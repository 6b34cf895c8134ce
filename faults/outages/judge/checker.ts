/** Judges the merged logs of one run by all invariants. It reads no clock and starts nothing. */
import { gather } from './evidence.ts';
import type { Logged } from '../log/events.ts';
import type { Finding, Judged } from './finding.ts';
import { INVARIANTS } from './invariants.ts';
import { type Expectation, PROMISES } from './promises.ts';
import { setsOf, type Sets } from './sets.ts';

type Violation = Finding & { readonly invariant: string };

export type Report = {
  /** Whether there was evidence for every invariant and none was violated. */
  readonly green: boolean;
  readonly violations: readonly Violation[];
  /** The invariants for which the logs contain no evidence. */
  readonly unproven: readonly string[];
  /** The number of commands in each set. The sets are those of Jepsen's checkers. */
  readonly counts: Readonly<Record<keyof Sets, number>>;
  /** The number of final records by outcome. `live`: those without an end. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Further figures of the run, one line each. */
  readonly says: readonly string[];
  /** The number of objects that were checked for each invariant. */
  readonly looked: Readonly<Record<string, number>>;
};

/** Judges the merged logs of one run, which must be in order of time. It has no side effects. */
export function check(events: readonly Logged[], expected: Expectation = { loss: false }): Report {
  const evidence = gather(events);
  const sets = setsOf(evidence);
  const promises = PROMISES.filter(({ name }) => expected.promises?.includes(name));
  const judged: readonly (Judged & { readonly name: string })[] = [...INVARIANTS, ...promises].map(
    ({ name, judge }) => ({ name, ...judge(evidence, expected) }),
  );
  const violations = judged.flatMap(({ name, findings }) => findings.map((found) => ({ invariant: name, ...found })));
  const unproven = judged.filter(({ looked }) => looked === 0).map(({ name }) => name);
  const outcomes: Record<string, number> = {};
  for (const one of evidence.cases.values()) {
    const record = evidence.final(one);
    if (!record) continue;
    const outcome = record.outcome ?? 'live';
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  return {
    green: violations.length === 0 && unproven.length === 0,
    violations,
    unproven,
    counts: {
      attempts: sets.attempts.length,
      ok: sets.ok.length,
      lost: sets.lost.length,
      unexpected: sets.unexpected.length,
      recovered: sets.recovered.length,
      unknown: sets.unknown.length,
      refused: sets.refused.length,
      late: sets.late.length,
      duplicates: sets.duplicates.length,
    },
    outcomes,
    says: judged.flatMap(({ name, says }) => (says === undefined ? [] : [`${name}: ${says}`])),
    looked: Object.fromEntries(judged.map(({ name, looked }) => [name, looked])),
  };
}

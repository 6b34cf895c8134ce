/** Judges the relay that is left when the others are killed, and all of them were full. */
import { MS, type Evidence, type FaultTime } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** The longest turn of the event loop of the survivor while it takes over, in milliseconds of CPU. */
const TURN_MS = 100;
/** The time before the fault whose samples say what the relay holds when it is full, in milliseconds. */
const BEFORE_MS = 15_000;
const MIB = 1024 * 1024;
/**
 * What it may hold beyond that: the records and marks of all commands, which the plan does not bound, and what its own
 * work and caches take.
 */
const KEPT_BYTES = 2 * 1024;
const SLACK = 10 * MIB;

type Survival = { readonly text: string; readonly before: number; readonly after: number; readonly turnMs: number };

/**
 * Judges that the survivor holds not much more than before, that no turn is long while it takes over, and that answers
 * name what was dropped. The fault's target is the survivor.
 */
export function judgeSurvivor(evidence: Evidence): Judged {
  const { of, faults } = evidence;
  const found = faults('relays-full').flatMap((fault) => survivalOf(evidence, fault) ?? []);
  const calls = of('attempt').length;
  const gaps = new Set(of('gap').map(({ reason }) => reason));
  const inMiB = (bytes: number): string => (bytes / MIB).toFixed(1);
  return {
    looked: found.length,
    findings: [
      ...find(
        'a survivor that holds what the others held',
        found.filter(({ before, after }) => after > before + SLACK + calls * KEPT_BYTES),
      ),
      ...find(
        'a takeover with a long turn',
        found.filter(({ turnMs }) => turnMs > TURN_MS),
      ),
      ...find(
        'nothing was dropped, so that no relay was full',
        gaps.has('evicted') ? [] : [{ text: [...gaps].join() }],
      ),
    ],
    says: found
      .map(
        ({ text, before, after, turnMs }) =>
          `${text} held ${inMiB(before)} MiB, then ${inMiB(after)} MiB, longest turn ${turnMs.toFixed(0)} ms of CPU`,
      )
      .join('; '),
  };
}

/** Returns null if the relay was not sampled before and after the others were killed. */
function survivalOf({ of }: Evidence, { target, from, to }: FaultTime): Survival | null {
  const isOf = ({ of: name }: { readonly of: string }): boolean => name.startsWith(`${target}.`);
  const samples = of('memory').filter(isOf);
  const held = (first: number, last: number): number =>
    Math.max(...samples.filter(({ at }) => first <= at && at <= last).map(({ live }) => live));
  const [before, after] = [held(from - BEFORE_MS * MS, from), held(from, to)];
  if (!Number.isFinite(before) || !Number.isFinite(after)) return null;
  const turns = of('turns').filter((one) => isOf(one) && from <= one.at && one.at <= to);
  return { text: target, before, after, turnMs: Math.max(0, ...turns.map(({ turnMs }) => turnMs)) };
}

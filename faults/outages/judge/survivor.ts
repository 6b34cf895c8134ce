/** Judges the relay that survives when all others are killed while all relays are full. */
import { MS, type Evidence, type FaultTime } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** The maximum CPU time of one turn of the survivor's event loop during the takeover, in milliseconds. */
const TURN_MS = 100;
/** The time before the fault in which samples show what a full relay holds, in milliseconds. */
const BEFORE_MS = 15_000;
const MIB = 1024 * 1024;
/**
 * What the survivor may hold in addition: the records and marks of all commands, which the plan does not limit, and
 * what its own work and caches need.
 */
const KEPT_BYTES = 2 * 1024;
const SLACK = 10 * MIB;

type Survival = { readonly text: string; readonly before: number; readonly after: number; readonly turnMs: number };

/**
 * Judges that the survivor does not hold much more than before, that no turn is long during the takeover, and that
 * answers state what was dropped. The fault's target is the survivor.
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

/** Returns null if the relay was not sampled both before and after the others were killed. */
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

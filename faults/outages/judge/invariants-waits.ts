import { MS, verdictsOf, type Case, type Evidence, type Wait } from './evidence.ts';
import { keyText } from '../log/events.ts';
import { find, type Judged } from './finding.ts';
import type { Expectation } from './expectation.ts';

/** A wait that lasted this much longer than its command was not answered. */
const TOLD_MS = 5_000;
/** A relay may still be sending an answer when it notices a loss. */
const LOSS_TOLD_MS = 1_000;

export function judgeWaits(evidence: Evidence, { loss }: Expectation): Judged {
  const all = [...evidence.cases.values()];
  const waits = all.flatMap((one) =>
    one.waits.map((wait) => ({ one, wait, text: `${one.text} ${wait.attempt.wait}` })),
  );
  // Ends that were reported before the store lost data may differ now.
  const forgotten = Math.max(...evidence.of('lost').map(({ at }) => at + LOSS_TOLD_MS * MS));
  const lies = all.filter((one) => {
    const record = evidence.final(one);
    const told = verdictsOf(one);
    const truth = record ?? (loss ? undefined : told[0]);
    const binding = loss ? told.filter(({ at }) => at > forgotten) : told;
    return truth && binding.some((end) => end.outcome !== truth.outcome || end.execution !== truth.execution);
  });
  return {
    looked: waits.length,
    findings: [
      ...find(
        'a wait that was never answered',
        waits.filter(({ wait }) => wait.ends.length === 0),
      ),
      ...find(
        'a wait that was answered more than once',
        waits.filter(({ wait }) => wait.ends.length > 1),
      ),
      ...find(
        'an answer that nobody waited for',
        all.filter(({ strayEnds }) => strayEnds.length > 0),
      ),
      ...find('told otherwise than the record says', lies),
      ...find('told before the record said so', loss ? [] : toldEarly(evidence)),
      ...find(
        'left waiting though the command had ended',
        waits.filter(({ one, wait }) => wasLeft(evidence, one, wait)),
      ),
    ],
  };
}

/** A reader found the command live after a caller had received its end. */
function toldEarly({ cases, of }: Evidence): readonly Case[] {
  const live = Map.groupBy(of('live'), keyText);
  return [...cases.values()].filter((one) => {
    const told = verdictsOf(one)[0];
    return told && live.get(one.text)?.some(({ since }) => since > told.at);
  });
}

/**
 * Without a fault that explains it, a wait continued after its command had run, or after another wait had received its
 * end.
 */
function wasLeft({ calmSince }: Evidence, one: Case, { attempt, ends }: Wait): boolean {
  const end = ends[0];
  if (!end || end.event === 'refused') return false;
  const told = [...verdictsOf(one), ...one.runEnds].find(({ at }) => at < end.at);
  return told !== undefined && end.at - Math.max(told.at, attempt.at, calmSince(end.at)) > TOLD_MS * MS;
}

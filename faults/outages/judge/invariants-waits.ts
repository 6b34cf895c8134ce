/** Judges that each wait of a caller is answered once, in time, and as the record says. */
import { MS, verdictsOf, type Case, type Evidence, type Wait } from './evidence.ts';
import { keyText } from '../log/events.ts';
import { find, type Judged } from './finding.ts';
import type { Expectation } from './expectation.ts';

/** The time by which a wait may end later than its command, in milliseconds. */
const ANSWER_DELAY_MS = 5_000;
/** The time after a loss in which a relay may still send answers from before the loss, in milliseconds. */
const LATE_ANSWERS_MS = 1_000;

export function judgeWaits(evidence: Evidence, { loss }: Expectation): Judged {
  const all = [...evidence.cases.values()];
  const waits = all.flatMap((one) =>
    one.waits.map((wait) => ({ one, wait, text: `${one.text} ${wait.attempt.wait}` })),
  );
  // Ends that were reported before the store lost data may differ from the record.
  const forgotten = Math.max(...evidence.of('lost').map(({ at }) => at + LATE_ANSWERS_MS * MS));
  const lies = all.filter((one) => {
    const record = evidence.final(one);
    const reported = verdictsOf(one);
    const truth = record ?? (loss ? undefined : reported[0]);
    const binding = loss ? reported.filter(({ at }) => at > forgotten) : reported;
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
        'an answer without a wait',
        all.filter(({ strayEnds }) => strayEnds.length > 0),
      ),
      ...find('an answer that differs from the record', lies),
      ...find('an answer before the end was recorded', loss ? [] : answeredEarly(evidence)),
      ...find(
        'left waiting though the command had ended',
        waits.filter(({ one, wait }) => wasLeft(evidence, one, wait)),
      ),
    ],
  };
}

/** Returns the commands that a reader found live after a caller had received their end. */
function answeredEarly({ cases, of }: Evidence): readonly Case[] {
  const live = Map.groupBy(of('live'), keyText);
  return [...cases.values()].filter((one) => {
    const reported = verdictsOf(one)[0];
    return reported && live.get(one.text)?.some(({ since }) => since > reported.at);
  });
}

/**
 * Returns whether a wait continued after its command had run, or after another wait had received the end, and no fault
 * explains that.
 */
function wasLeft({ calmSince }: Evidence, one: Case, { attempt, ends }: Wait): boolean {
  const end = ends[0];
  if (!end || end.event === 'refused') return false;
  const reported = [...verdictsOf(one), ...one.runEnds].find(({ at }) => at < end.at);
  return reported !== undefined && end.at - Math.max(reported.at, attempt.at, calmSince(end.at)) > ANSWER_DELAY_MS * MS;
}

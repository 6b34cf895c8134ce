/** Judges the promises of a data directory. */
import { answersOf, type Case, type Evidence, MS } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** How much later than DATA_SYNC allows a sync may be on a busy machine, in milliseconds. */
const SYNC_LATE_MS = 1_000;
/** The time within which a relay must admit commands again after its disk has room, in milliseconds. */
const ROOM_NOTICED_MS = 5_000;

/**
 * Judges which answers a loss of power revoked. Everything that a caller knew when the last sync began must be kept.
 * What was lost may be as old as DATA_SYNC plus the duration of a sync. With `always`, nothing may be lost.
 */
export function judgeKept(evidence: Evidence): Judged {
  const losses = evidence.of('power');
  // An unknown outcome promises nothing. It may also come from the caller's library, if that finds no record.
  const answers = [...evidence.cases.values()].flatMap((one) =>
    answersOf(one)
      .filter(({ outcome }) => outcome !== 'outcome_unknown')
      .map((answer) => ({ one, answer })),
  );
  const lost = answers.flatMap(({ one, answer }) => {
    const loss = losses.find(({ killedAt }) => killedAt > answer.at);
    if (!loss || isOnRecord(evidence, one, answer)) return [];
    const ageMs = (loss.killedAt - answer.at) / MS;
    const allowedMs = loss.withinMs === null ? Infinity : loss.withinMs > 0 ? loss.withinMs + SYNC_LATE_MS : 0;
    return [{ text: `${one.text} ${answer.wait}`, ageMs, allowedMs, synced: answer.at < loss.keptUntil }];
  });
  const oldest = Math.max(0, ...lost.map(({ ageMs }) => ageMs));
  return {
    looked: losses.length,
    findings: [
      ...find(
        'lost though it had been synced',
        lost.filter(({ synced }) => synced),
      ),
      ...find(
        'lost though it was older than DATA_SYNC allows',
        lost.filter(({ ageMs, allowedMs }) => ageMs > allowedMs),
      ),
    ],
    says: `${lost.length} of ${answers.length} answers lost, the oldest ${oldest.toFixed(0)} ms before its loss of power`,
  };
}

/** Returns whether the command's record states at least what the answer stated. */
function isOnRecord({ final }: Evidence, one: Case, answer: ReturnType<typeof answersOf>[number]): boolean {
  const record = final(one);
  if (!record) return false;
  return answer.outcome === 'pending' || (record.outcome === answer.outcome && record.execution === answer.execution);
}

export function judgeFull({ cases, of, faults }: Evidence): Judged {
  const times = of('skipped').length > 0 ? [] : faults('data-full');
  const refusals = [...cases.values()].flatMap((one) =>
    one.waits.flatMap(({ attempt, ends }) =>
      ends
        .filter((end) => end.event === 'refused' && end.code === 'store_full')
        .map(({ at }) => ({ text: `${one.text} ${attempt.wait}`, at })),
    ),
  );
  const during = ({ from, to }: { readonly from: number; readonly to: number }, at: number): boolean =>
    from <= at && at <= to + ROOM_NOTICED_MS * MS;
  return {
    looked: times.length,
    findings: [
      ...find(
        'a full disk that refused nothing',
        times
          .filter((time) => !refusals.some(({ at }) => during(time, at)))
          .map(({ from }) => ({ text: String(from) })),
      ),
      ...find(
        'refused though the disk had room',
        refusals.filter(({ at }) => !times.some((time) => during(time, at))),
      ),
    ],
    says: `${refusals.length} requests refused while the disk was full`,
  };
}

export function judgeShut({ of }: Evidence): Judged {
  const starts = of('shut');
  const wrong = starts.filter(({ why }) => why === null || !why.includes('cannot be used'));
  return {
    looked: starts.length,
    findings: find(
      'a start on a read-only directory without its refusal',
      wrong.map(({ of: name, why }) => ({ text: `${name}: ${why ?? 'it started'}` })),
    ),
    says: `${starts.length} starts refused`,
  };
}

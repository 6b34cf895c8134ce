/** Lists the invariants that every run must keep, each with the function that judges it. */
import { canaryOf, keyText } from '../log/events.ts';
import {
  answersOf,
  type Case,
  type Evidence,
  MS,
  type RecordRead,
  RECOVERY_MS,
  verdictsOf,
  type Wait,
  wasRefused,
} from './evidence.ts';
import { find, type Judged } from './finding.ts';
import type { Expectation } from './promises.ts';
import { judgeCaps, judgeIdle, judgeMemory, judgeProcesses } from './invariants-node.ts';
import { setsOf } from './sets.ts';

type Invariant = {
  readonly name: string;
  readonly says: string;
  readonly judge: (evidence: Evidence, expected: Expectation) => Judged;
};

/**
 * How much later than its deadline the end of a command may be reported, in milliseconds, if the relay repaired the
 * command at the last moment.
 */
const MEND_MARGIN_MS = 1_000;
/** The outcomes that a client reports. The evidence for such an outcome must come from one instance. */
const FROM_CLIENT = new Set(['completed', 'failed', 'cancelled']);

export const INVARIANTS: readonly Invariant[] = [
  { name: 'I1', says: 'every admitted command ends, and in time', judge: judgeEnding },
  { name: 'I2', says: 'nothing admitted is lost, nothing appears by itself', judge: judgeSets },
  { name: 'I3', says: 'a record ends exactly once', judge: judgeOnce },
  { name: 'I4', says: 'each wait is answered once, as the record says', judge: judgeWaits },
  { name: 'I5', says: 'an honest client runs a command at most once', judge: judgeRuns },
  { name: 'I6', says: 'reservations are the live records, none at the end', judge: judgeReservations },
  { name: 'I7', says: 'only the bound instance ends a command', judge: judgeInstances },
  { name: 'I8', says: 'what is proven not to have run did not run, and the other way round', judge: judgeProof },
  { name: 'I9', says: "no user sees another user's payload", judge: judgeCanaries },
  { name: 'I10', says: 'bounds hold', judge: judgeCaps },
  { name: 'I11', says: 'memory and keys are bounded', judge: judgeMemory },
  { name: 'I12', says: 'nothing is left once everybody went', judge: judgeIdle },
  { name: 'I13', says: 'no relay ends by itself', judge: judgeProcesses },
];

function judgeEnding(evidence: Evidence, { loss }: Expectation): Judged {
  const { cases, final, disturbed } = evidence;
  const all = [...cases.values()];
  const admitted = all.filter((one) => answersOf(one).length > 0 || final(one));
  const live = admitted.filter((one) => {
    const record = final(one);
    return record ? record.stage !== 'terminal' : !loss && verdictsOf(one).length === 0;
  });
  const slow = all.filter((one) => {
    const first = one.waits.find(({ ends }) => ends.every(({ event }) => event !== 'refused'))?.attempt;
    const verdict = verdictsOf(one)[0];
    // The deadline counts from the admission. This may be later than the attempt, because a restarted relay accepts
    // requests that waited for it.
    const since = Math.max(first?.at ?? 0, evidence.admittedAt(one));
    return first && verdict && verdict.at - since > (first.budgetMs + RECOVERY_MS) * MS;
  });
  const stranded = all.filter((one) => {
    const attempt = one.waits[0]?.attempt;
    // A call with a revoked token has a short deadline and is not repeated.
    if (!attempt || attempt.token !== undefined) return false;
    if (!isStranded(one, evidence) || !wasUp(evidence, one)) return false;
    return !disturbed(attempt.at, attempt.at + attempt.budgetMs * MS) || hadTime(evidence, one);
  });
  return {
    looked: admitted.length,
    findings: [
      ...find('admitted and never ended', live),
      ...find('ended too late', slow),
      ...find('not brought to a client that was connected all the time', stranded),
    ],
  };
}

function isStranded(one: Case, { final }: Evidence): boolean {
  const refusal = one.waits
    .flatMap(({ ends }) => ends)
    .some((end) => end.event === 'refused' && end.code === 'not_connected');
  // A pause ends commands that were dispatched but not yet written.
  const isPaused = verdictsOf(one).some(({ code }) => code === 'paused');
  return refusal || (final(one)?.outcome === 'expired' && !isPaused);
}

/**
 * Returns whether the command expired although no fault had any effect by then, so that the relays had enough time to
 * repair everything.
 */
function hadTime(evidence: Evidence, one: Case): boolean {
  const verdict = verdictsOf(one)[0];
  return verdict?.outcome === 'expired' && verdict.at - evidence.calmSince(verdict.at) > MEND_MARGIN_MS * MS;
}

/**
 * Returns whether the link of the command's client was up from before the first attempt until the end of the last wait.
 */
function wasUp({ of }: Evidence, { key, waits }: Case): boolean {
  const links = of('link').filter(({ user, client }) => user === key.user && client === key.client);
  const from = (waits[0]?.attempt.at ?? 0) - 1000 * MS;
  const to = Math.max(...waits.flatMap(({ attempt, ends }) => [attempt.at, ...ends.map(({ at }) => at)]));
  const before = links.findLast(({ at }) => at <= from);
  return before?.up === true && !links.some(({ at }) => at > from && at <= to);
}

function judgeSets(evidence: Evidence, { loss, unrecorded = false }: Expectation): Judged {
  const { attempts, lost: all, unexpected } = setsOf(evidence);
  const lost = unrecorded ? all.filter(wasAcknowledged) : all;
  return {
    looked: evidence.readAt === Infinity ? 0 : attempts.length,
    findings: [...find('lost', loss ? [] : lost), ...find('unexpected', unexpected)],
  };
}

/** Returns whether a caller received any other answer than that the outcome is unknown. */
function wasAcknowledged(one: Case): boolean {
  return answersOf(one).some(({ outcome }) => outcome !== 'outcome_unknown');
}

/**
 * Returns whether the record counts a late end although the command ran only once, at the bound instance. In that case
 * the late end repeats the client's own report.
 */
function countsItsOwn({ runs }: Case, record: RecordRead | null): boolean {
  return (
    record?.execution === 'reported_by_client' &&
    record.late > 0 &&
    runs.length === 1 &&
    runs[0]?.instance === record.bound
  );
}

function judgeOnce({ cases, of, final }: Evidence): Judged {
  const all = [...cases.values()];
  const changed = all.filter(({ records }) => {
    const ended = records.findIndex(({ stage }) => stage === 'terminal');
    if (ended < 0) return false;
    const first = records[ended];
    return records.slice(ended).some(({ stage, outcome }) => stage !== 'terminal' || outcome !== first?.outcome);
  });
  const twice = all.filter(({ ends }) => ends.some(({ rows }) => rows > 1));
  return {
    looked: of('ends').length,
    findings: [
      ...find('an end that changed', changed),
      ...find('more than one end in its history', twice),
      ...find(
        'its only end is counted as another one too',
        all.filter((one) => countsItsOwn(one, final(one))),
      ),
    ],
  };
}

function judgeRuns(evidence: Evidence): Judged {
  const { duplicates } = setsOf(evidence);
  return { looked: evidence.of('run-begin').length, findings: find('ran more than once', duplicates) };
}

function judgeReservations({ cases, of, final }: Evidence): Judged {
  const reserved = new Map(of('reservation').map((row) => [row.scope, row.reserved]));
  const live = new Map<string, number>();
  for (const one of cases.values()) {
    const record = final(one);
    if (record && record.stage !== 'terminal') live.set(record.scope, (live.get(record.scope) ?? 0) + 1);
  }
  const scopes = [...new Set([...reserved.keys(), ...live.keys()])];
  const wrong = (scope: string): boolean => (reserved.get(scope) ?? 0) !== (live.get(scope) ?? 0);
  const named = (scope: string) => ({
    text: `${scope}: ${reserved.get(scope) ?? 0} reserved, ${live.get(scope) ?? 0} live`,
  });
  const counted = of('count').filter((row) => row.live !== row.reserved);
  return {
    looked: of('reservations-read').length,
    findings: [
      ...find('reservations that are not the live records', scopes.filter(wrong).map(named)),
      ...find(
        'reservations that were not the live records',
        counted.map((row) => ({ text: `${row.scope}: ${row.reserved} reserved, ${row.live} live` })),
      ),
    ],
  };
}

function judgeInstances({ cases, final }: Evidence): Judged {
  const bound = [...cases.values()].filter((one) => final(one)?.bound);
  const foreign = bound.filter((one) => {
    const instance = final(one)?.bound;
    return verdictsOf(one).some(({ by }) => by !== null && by !== instance);
  });
  const elsewhere = bound.filter((one) => {
    const record = final(one);
    const reported = record?.execution === 'reported_by_client' && FROM_CLIENT.has(record.outcome ?? '');
    return reported && one.runs.length > 0 && !one.runs.some(({ instance }) => instance === record?.bound);
  });
  return {
    looked: bound.length,
    findings: [...find('a result of another instance', foreign), ...find('bound to one that never ran it', elsewhere)],
  };
}

/**
 * Judges that no command ran whose record proves that it did not run. If the store lost the record of a dispatch, the
 * missing record proves nothing; the loss is then reported, and the outcome is unknown.
 */
function judgeProof({ cases, final }: Evidence, { loss }: Expectation): Judged {
  const all = [...cases.values()].filter((one) => final(one) || wasRefused(one));
  const ran = all.filter((one) => one.runs.length > 0);
  const denied = ran.filter((one) => {
    const record = final(one);
    return record ? record.execution === 'not_written' || record.execution === 'refused_by_client' : true;
  });
  const invented = all.filter((one) => final(one)?.outcome === 'completed' && one.runs.length === 0);
  const forgotten = (one: Case): boolean => loss && final(one)?.outcome === 'outcome_unknown';
  const unmarked = ran.filter((one) => final(one)?.dispatched === false && !forgotten(one));
  return {
    looked: all.length,
    findings: [
      ...find('ran though it is proven not to have', denied),
      ...find('completed though no client ran it', invented),
      ...find(
        'ran without a dispatch on record',
        unmarked.filter((one) => !denied.includes(one)),
      ),
    ],
  };
}

function judgeCanaries({ cases, of }: Evidence): Judged {
  const all = [...cases.values()];
  const swapped = all.filter((one) => {
    const own = canaryOf(one.key);
    const seen = [...answersOf(one), ...one.runs].map(({ canary }) => canary);
    return seen.some((canary) => canary !== null && canary !== own);
  });
  const shown = of('seen').filter(({ user, canary }) => !canary.startsWith(canaryOf({ user, command: '' })));
  return {
    looked: all.flatMap((one) => [...answersOf(one), ...one.runs]).length + of('seen').length,
    findings: [
      ...find('a payload of another command', swapped),
      ...find(
        "another user's payload",
        shown.map(({ user, on, canary }) => ({ text: `${user} on ${on}: ${canary}` })),
      ),
    ],
  };
}

// Judges that each wait of a caller is answered once, in time, and in agreement with the record.

/** How much later than its command a wait may end, in milliseconds. */
const ANSWER_DELAY_MS = 5_000;
/** How long after a loss a relay may still send answers from before the loss, in milliseconds. */
const LATE_ANSWERS_MS = 1_000;

function judgeWaits(evidence: Evidence, { loss, unrecorded = false }: Expectation): Judged {
  const all = [...evidence.cases.values()];
  const waits = all.flatMap((one) =>
    one.waits.map((wait) => ({ one, wait, text: `${one.text} ${wait.attempt.wait}` })),
  );
  // An end that was reported before the store lost data may differ from the record.
  const forgotten = Math.max(...evidence.of('lost').map(({ at }) => at + LATE_ANSWERS_MS * MS));
  const lies = all.filter((one) => {
    const record = evidence.final(one);
    const reported = verdictsOf(one);
    const truth = record ?? (loss ? undefined : reported[0]);
    // A caller whose command was lost is told that its outcome is unknown. Another caller may cause the command to be
    // admitted again.
    const binds = ({ at, outcome }: (typeof reported)[number]): boolean =>
      at > forgotten && outcome !== 'outcome_unknown';
    const isKnown = ({ outcome }: (typeof reported)[number]): boolean => outcome !== 'outcome_unknown';
    const binding = loss ? reported.filter(binds) : unrecorded ? reported.filter(isKnown) : reported;
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
 * Returns whether a wait went on, without a fault that explains it, after its command had run or after another wait had
 * received the end.
 */
function wasLeft({ calmSince, admittedAt }: Evidence, one: Case, { attempt, ends }: Wait): boolean {
  const end = ends[0];
  if (!end || end.event === 'refused') return false;
  // A store that lost a command may admit it again. Then the wait goes on with the new record.
  const since = admittedAt(one);
  const reported = [...verdictsOf(one), ...one.runEnds].find(({ at }) => at < end.at && at >= since);
  return reported !== undefined && end.at - Math.max(reported.at, attempt.at, calmSince(end.at)) > ANSWER_DELAY_MS * MS;
}

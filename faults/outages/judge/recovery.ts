/** Judges whether commands and waits recovered after the loss of a relay, and how fast. */
import { answersOf, MS, verdictsOf, type Case, type Evidence, type FaultTime } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** The faults that end a relay at once. */
export const KILLS = [
  'relay-kill',
  'relay-kill-pausing',
  'relay-tear',
  'relay-halt',
  'relay-power',
  'relay-shut',
] as const;
/** The maximum time in which the client of a killed relay notices that its link is gone, in milliseconds. */
const LINK_LOSS_MS = 2_000;
/** The time within which the commands of a killed relay must continue, in milliseconds. */
const RECOVERY_MAX_MS = 15_000;

type Recovery = {
  readonly one: Case;
  readonly text: string;
  /** The time until the command continued, in nanoseconds; Infinity if it never did. */
  readonly again: number;
  readonly known: number;
};

/**
 * Returns the commands that were live on a killed relay, with the times until each recovered.
 *
 * A command counts if it was attempted before the kill, no caller knew its end yet, and one of these is true:
 * - A caller waited on that relay.
 * - The client's link fell within two seconds of the kill.
 *
 * A command does not count in these cases:
 * - No relay admitted it.
 * - It was admitted only after the kill, because its request was lost and repeated.
 * - It was requested from that relay while the relay was down after an earlier kill.
 *
 * A command that is hit by two kills counts twice.
 *
 * `again` is the time until the first of these events:
 * - A caller learned the end.
 * - The handler began, if it had not begun before.
 * - The link of the client that had begun the command was up again. A link that never fell counts as up at the kill,
 *   because a client keeps its report until a relay takes it.
 * - The link of the client was up again, for a command that was marked as dispatched and never reached its client. Such
 *   a command may not be sent again, and ends as unknown at its deadline.
 *
 * `known` is the time until a caller knows the end: the time that callers experience, with the retries of their
 * libraries.
 */
function recoveriesOf(evidence: Evidence): readonly Recovery[] {
  const kills = evidence.faults(...KILLS);
  const links = linksOf(evidence);
  return [...evidence.cases.values()].flatMap((one) => {
    const from = one.waits[0]?.attempt.at ?? Infinity;
    const to = verdictsOf(one)[0]?.at ?? Infinity;
    if (answersOf(one).length === 0 && !evidence.final(one)) return [];
    const own = links.get(clientOf(one.key)) ?? [];
    return kills.flatMap((kill) => {
      if (kill.from < from || kill.from >= to || isYounger(one, evidence, kill)) return [];
      const fell = own.some(({ up, at }) => !up && at >= kill.from && at <= kill.from + LINK_LOSS_MS * MS);
      if (!fell && !waitedThere(one, kill, kills)) return [];
      const marked = evidence.final(one)?.dispatched ?? false;
      const linkedAt = fell ? upAfter(own, kill.from) : kill.from;
      const again = Math.min(to, takenUp(one, { kill: kill.from, linkedAt, marked }));
      return [
        {
          one,
          text: `${one.text} after ${seconds(again - kill.from)} s`,
          again: again - kill.from,
          known: to - kill.from,
        },
      ];
    });
  });
}

/**
 * Returns whether the command was admitted after the kill. The times in records and the time of the kill come from the
 * same machine's clock.
 */
function isYounger(one: Case, { final }: Evidence, { wall }: FaultTime): boolean {
  return (final(one)?.admittedAt ?? -Infinity) > wall;
}

type LinkEvent = { readonly up: boolean; readonly at: number };

function linksOf({ of }: Evidence): ReadonlyMap<string, readonly LinkEvent[]> {
  return Map.groupBy(of('link'), clientOf);
}

function clientOf({ user, client }: { readonly user: string; readonly client: string }): string {
  return `${user}/${client}`;
}

function waitedThere({ waits }: Case, { target, from }: FaultTime, kills: readonly FaultTime[]): boolean {
  const down = kills.filter((kill) => kill.target === target && kill.from < from);
  return waits.some(
    ({ attempt: { relay, at }, ends }) =>
      relay === target &&
      at <= from &&
      (ends[0]?.at ?? Infinity) > from &&
      !down.some((kill) => kill.from <= at && at <= kill.to),
  );
}

type Kill = { readonly kill: number; readonly linkedAt: number; readonly marked: boolean };

function takenUp({ runs }: Case, { kill, linkedAt, marked }: Kill): number {
  const [run] = runs;
  if (run) return run.at <= kill ? linkedAt : run.at;
  return marked ? linkedAt : Infinity;
}

function upAfter(links: readonly LinkEvent[], at: number): number {
  return links.find((link) => link.up && link.at > at)?.at ?? Infinity;
}

export function judgeRecovery(evidence: Evidence): Judged {
  const held = recoveriesOf(evidence);
  const late = held.filter(({ again }) => again > RECOVERY_MAX_MS * MS);
  const kills = evidence.faults(...KILLS).length;
  const again = spread(held.map((one) => one.again));
  const known = spread(held.map((one) => one.known));
  const unknown = held.filter(({ one }) => evidence.final(one)?.outcome === 'outcome_unknown').length;
  return {
    looked: held.length,
    findings: find('did not go on within 15 s', late),
    says: `${held.length} commands held at ${kills} kills, went on after ${again}; callers knew the end after ${known}; ${unknown} unknown`,
  };
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    seconds(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return `p50 ${at(0.5)} p99 ${at(0.99)} max ${at(1)} s`;
}

function seconds(ns: number): string {
  return (ns / MS / 1000).toFixed(2);
}

/**
 * Judges the last waits of a run: after the load, each relay is asked once more for the end of each command. The names
 * of these waits contain `again`.
 */
export function judgeReattached({ cases, final }: Evidence): Judged {
  const asked = [...cases.values()].flatMap((one) => {
    const record = final(one);
    if (record?.stage !== 'terminal') return [];
    return one.waits
      .filter(({ attempt }) => attempt.wait.includes('.again'))
      .map(({ attempt, ends: [end] }) => ({
        text: `${one.text} of ${attempt.relay}`,
        given: end?.event === 'answer' && end.outcome === record.outcome && end.execution === record.execution,
      }));
  });
  const given = asked.filter((one) => one.given).length;
  return {
    looked: asked.length,
    findings: find(
      'a recorded end that a relay did not return',
      asked.filter((one) => !one.given),
    ),
    says: `${given} of ${asked.length} repeated requests got the recorded end`,
  };
}

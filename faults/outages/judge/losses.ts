/** Judges whether relays noticed each loss of confirmed data, and reported it. */
import { type Evidence, MS, verdictsOf } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/** The faults with which the store loses confirmed data, in plans that promise that each loss is noticed. */
const LOSSES = ['redis-kill', 'redis-cut', 'redis-failover', 'relay-power'] as const;
/** The time after a loss within which waiting callers must be answered, in milliseconds. */
const ANSWER_DELAY_MS = 5_000;

/**
 * Judges by the relays' reports whether they noticed each loss. A relay reports a loss if the store does not know a
 * number that it had confirmed, so each report proves a loss of confirmed data.
 */
export function judgeNoticed({ of, faults }: Evidence): Judged {
  const losses = faults(...LOSSES);
  const words = of('lost').filter(({ cause }) => cause === 'store_lost');
  const noticed = losses.map((loss, index) => {
    const until = losses[index + 1]?.from ?? Infinity;
    const said = words.filter(({ at }) => at >= loss.from && at < until);
    return {
      text: `${loss.kind} ${index + 1}`,
      relays: new Set(said.map((word) => word.of)).size,
      afterNs: (said[0]?.at ?? Infinity) - loss.from,
    };
  });
  const seen = noticed.filter(({ relays }) => relays > 0);
  const slowest = Math.max(0, ...seen.map(({ afterNs }) => afterNs)) / MS;
  return {
    looked: losses.length,
    findings: find(
      'a loss that no relay noticed',
      noticed.filter(({ relays }) => relays === 0),
    ),
    says: `${seen.length} of ${losses.length} losses noticed, by ${noticed.map(({ relays }) => relays).join('+')} relays, ${(slowest / 1000).toFixed(1)} s after the fault at the latest`,
  };
}

/**
 * Judges two rules. First, callers who waited at a relay when it noticed a loss must be answered within five seconds,
 * or within five seconds after the store is back if it goes away again. This does not apply to a command that the store
 * admitted again after the loss, because the wait goes on with the new record. Second, no caller may get `completed`
 * for a command that no client ran.
 */
export function judgeAnswered({ cases, of, faults, admittedAt }: Evidence): Judged {
  const words = of('lost').filter(({ cause }) => cause === 'store_lost');
  const losses = faults(...LOSSES);
  const beganBefore = (noticed: number): number =>
    Math.max(-Infinity, ...losses.map(({ from }) => from).filter((from) => from <= noticed));
  const backAt = (noticed: number): number => {
    const again = losses.filter(({ from }) => from > noticed && from < noticed + ANSWER_DELAY_MS * MS);
    return Math.max(noticed, ...again.map(({ to }) => to));
  };
  const all = [...cases.values()];
  const held = words.flatMap((word) => {
    const kept = all.filter((one) => admittedAt(one) <= beganBefore(word.at));
    return kept.flatMap((one) =>
      one.waits
        .filter(({ attempt }) => attempt.relay === word.of && attempt.at < word.at)
        .map(({ attempt, ends }) => ({
          text: `${one.text} ${attempt.wait}`,
          afterNs: (ends[0]?.at ?? Infinity) - backAt(word.at),
        }))
        .filter(({ afterNs }) => afterNs > 0),
    );
  });
  const invented = all.filter(
    (one) => one.runs.length === 0 && verdictsOf(one).some(({ outcome }) => outcome === 'completed'),
  );
  const slowest = Math.max(0, ...held.map(({ afterNs }) => afterNs)) / MS / 1000;
  return {
    looked: losses.length,
    findings: [
      ...find(
        'left waiting after a loss',
        held.filter(({ afterNs }) => afterNs > ANSWER_DELAY_MS * MS),
      ),
      ...find('reported as completed though no client ran it', invented),
    ],
    says: `${held.length} waits through ${words.length} losses noticed, answered within ${slowest.toFixed(1)} s`,
  };
}

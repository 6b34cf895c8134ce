/** Judges the promises that single plans make beyond the invariants. */
import { answersOf, type Case, type Evidence, MS, verdictsOf } from './evidence.ts';
import { find, type Judged } from './finding.ts';
import { judgeAimed } from './aimed.ts';
import { judgeSurvivor } from './survivor.ts';
import { judgeUnfenced } from './unfenced.ts';
import { KILLS, judgeReattached, judgeRecovery } from './recovery.ts';

/** The names of the promises that a plan may make beyond the invariants. */
export const PROMISE_NAMES = [
  'prompt',
  'recovery',
  'reattached',
  'noticed',
  'answered',
  'drained',
  'single',
  'payloads',
  'amnesty',
  'counters',
  'kept',
  'full',
  'shut',
  'ordered',
  'unrepeated',
  'timely',
  'aimed',
  'unfenced',
  'survivor',
  'hit',
] as const;
export type PromiseName = (typeof PROMISE_NAMES)[number];

/** What a run is judged by, which depends on its plan. */
export type Expectation = {
  /** Whether the faults made the store lose data, so that admitted commands may be missing. */
  readonly loss: boolean;
  /**
   * Whether an owner may be away for longer than its lease: what it had decided and not recorded is then gone, and callers
   * who wait on it are told that the outcome is unknown. Such an answer acknowledges nothing. Absent: no.
   */
  readonly unrecorded?: boolean;
  /** The promises of the plan, which are judged beyond the invariants. */
  readonly promises?: readonly PromiseName[];
};

type PlanPromise = {
  readonly name: PromiseName;
  readonly says: string;
  readonly judge: (evidence: Evidence) => Judged;
};

export const PROMISES: readonly PlanPromise[] = [
  { name: 'prompt', says: 'no wait outlives its budget by more than 2 s', judge: judgePrompt },
  { name: 'recovery', says: 'commands of a killed relay go on within 15 s', judge: judgeRecovery },
  { name: 'reattached', says: 'every relay answers a repeated request with the recorded end', judge: judgeReattached },
  { name: 'noticed', says: 'each loss of the store is noticed', judge: judgeNoticed },
  { name: 'answered', says: 'callers that wait during a loss get a true answer within 5 s', judge: judgeAnswered },
  {
    name: 'drained',
    says: 'a relay that stops loses no outcome, and no other relay refuses calls',
    judge: judgeDrained,
  },
  { name: 'single', says: 'one process of a node at a time', judge: judgeSingle },
  { name: 'payloads', says: 'a spilled payload is complete or reported as missing', judge: judgePayloads },
  { name: 'amnesty', says: 'an outage of the store ends no node', judge: judgeAmnesty },
  { name: 'counters', says: 'each counter in Redis is what is there', judge: judgeCounters },
  { name: 'kept', says: 'a loss of power loses what DATA_SYNC says, and nothing else', judge: judgeKept },
  { name: 'full', says: 'a full disk refuses new commands until there is room again', judge: judgeFull },
  { name: 'shut', says: 'a relay does not start on a read-only data directory', judge: judgeShut },
  { name: 'ordered', says: 'a late hello takes no later link away', judge: judgeOrdered },
  { name: 'unrepeated', says: 'no command that arrived is written again', judge: judgeUnrepeated },
  { name: 'timely', says: 'no handler begins after the deadline of its command', judge: judgeTimely },
  { name: 'aimed', says: 'kills hit each role alike and what owners do, and little ends unknown', judge: judgeAimed },
  { name: 'unfenced', says: 'no relay loses its lease or a partition by its own work', judge: judgeUnfenced },
  {
    name: 'survivor',
    says: 'the last of several full relays stays within its memory, and takes over in short turns',
    judge: judgeSurvivor,
  },
  { name: 'hit', says: 'each fault hit what it aimed at', judge: judgeHit },
];

/** The time by which a wait may exceed its limit because of a busy machine, in milliseconds. */
const OVER_MS = 2_000;
/** The faults that stop a relay, and with it the timers of its waits. */
const PAUSES = ['relay-pause', 'relay-swap'] as const;
/** The fault that kills every relay at once. */
const ALL_KILLED = 'relays-kill';
/** The fault that kills all relays but its target. */
const ALL_BUT_ONE_KILLED = 'relays-full';

/**
 * The time that a caller on a link may take to repeat its request after its relay is back, in milliseconds. The
 * caller's wait then starts again.
 */
const ASKED_ANEW_MS = 5_000;

/** Judges that waits end in time. The time during which the requested relay was stopped or gone does not count. */
function judgePrompt({ cases, faults }: Evidence): Judged {
  const gone = faults(...KILLS, ALL_KILLED, ALL_BUT_ONE_KILLED).map((kill) => {
    return { ...kill, to: kill.to + ASKED_ANEW_MS * MS };
  });
  const pauses = [...faults(...PAUSES), ...gone];
  const held = (relay: string, from: number, to: number): number =>
    pauses
      .filter(({ kind, target }) => {
        if (kind === ALL_KILLED) return true;
        return (target === relay) === (kind !== ALL_BUT_ONE_KILLED);
      })
      .reduce((sum, pause) => sum + Math.max(0, Math.min(to, pause.to) - Math.max(from, pause.from)), 0);
  const waits = [...cases.values()].flatMap((one) =>
    one.waits.flatMap(({ attempt, ends }) => {
      const end = ends[0];
      if (!end) return [];
      const overNs = end.at - attempt.at - attempt.budgetMs * MS - held(attempt.relay, attempt.at, end.at);
      return [{ text: `${one.text} ${attempt.wait}`, overNs }];
    }),
  );
  return {
    looked: waits.length,
    findings: find(
      'a wait that hung',
      waits.filter(({ overNs }) => overNs > OVER_MS * MS),
    ),
  };
}

/**
 * Judges that a stopping relay finishes its commands. In such a plan, handlers work for less than the ten seconds that
 * the relay waits. Only the stopping relay answers `draining`; callers that it refuses try the others.
 */
function judgeDrained({ cases, final, faults }: Evidence): Judged {
  const drains = faults('relay-drain');
  const all = [...cases.values()];
  const unknown = all.filter((one) => final(one)?.outcome === 'outcome_unknown');
  const refused = all.flatMap((one) =>
    one.waits.flatMap(({ attempt, ends }) => {
      const [end] = ends;
      if (end?.event !== 'refused') return [];
      const stopping = drains.some(
        ({ target, from, to }) => target === attempt.relay && from <= end.at && end.at <= to,
      );
      return end.code === 'draining' && stopping ? [] : [{ text: `${one.text} ${attempt.wait} ${end.code}` }];
    }),
  );
  const together = drains.filter(({ from }, index) => from < (drains[index - 1]?.to ?? 0));
  return {
    looked: drains.length,
    findings: [
      ...find('an outcome that a stop lost', unknown),
      ...find('refused though others take work', refused),
      ...find(
        'stopped before the previous one was back',
        together.map(({ target }) => ({ text: target })),
      ),
    ],
    says: `${drains.length} stops, ${slowestOf(drains)} s the longest`,
  };
}

function slowestOf(faults: readonly { readonly from: number; readonly to: number }[]): string {
  return (Math.max(0, ...faults.map(({ from, to }) => to - from)) / MS / 1000).toFixed(1);
}

/**
 * The part of the lease that is certainly left when a process is stopped, in milliseconds. The lease of 8 s is renewed
 * every 2 s, so at least 6 s are left; one second is for delays of a busy machine.
 */
const LEASE_LEFT_MS = 5_000;

function judgeSingle({ of }: Evidence): Judged {
  const twins = of('twin');
  const beside = twins.filter(({ first, came }) => first === 'live' && came === 'in');
  const early = twins.filter(
    ({ first, came, afterMs }) => first === 'paused' && came === 'in' && afterMs < LEASE_LEFT_MS,
  );
  const swapped = twins.filter(({ first, came }) => first === 'paused' && came === 'in');
  const fences = of('lost').filter(({ cause }) => cause === 'fenced');
  const unfenced = swapped.filter(({ of: node, at }) => !fences.some((fence) => fence.of === node && fence.at > at));
  const named = (list: typeof twins) => list.map((twin) => ({ text: `${twin.of} after ${twin.afterMs} ms` }));
  return {
    looked: twins.length,
    findings: [
      ...find('two processes of one node', named(beside)),
      ...find('taken over before the lease was over', named(early)),
      ...find('taken over, and the first process never noticed', named(unfenced)),
    ],
    says: `${twins.filter(({ came }) => came === 'refused').length} refused, ${swapped.length} took over after the lease`,
  };
}

function judgePayloads({ of, faults }: Evidence): Judged {
  const payloads = of('payload');
  const count = (state: string): number => payloads.filter((payload) => payload.state === state).length;
  const damages = faults('spill-flip', 'spill-remove', 'spill-link');
  const missing = damages.length > 0 ? [] : payloads.filter(({ state }) => state === 'unavailable');
  const named = (list: typeof payloads) =>
    list.map((one) => ({ text: `${one.user}/${one.client}/${one.command} ${one.kind}` }));
  const skipped = of('skipped').map(({ kind, why }) => `; ${kind} not done: ${why}`);
  return {
    looked: Math.min(payloads.length, damages.length + faults('spill-shut', 'spill-full', 'relay-kill').length),
    findings: [
      ...find('bytes that were never sent', named(payloads.filter(({ state }) => state === 'wrong'))),
      ...find('missing though nothing removed it', named(missing)),
    ],
    says: `${count('whole')} whole, ${count('unavailable')} reported as missing, ${count('wrong')} wrong${skipped.join('')}`,
  };
}

/**
 * Judges the time after Redis was unavailable for all relays alike. A relay that recovers first must not reap one that
 * has not recovered yet.
 */
function judgeAmnesty({ of, faults }: Evidence): Judged {
  const pauses = faults('redis-pause', 'all-holes');
  const lost = of('lost').filter(({ at }) => pauses.some(({ from }) => at >= from));
  return {
    looked: pauses.length,
    findings: find(
      'a node that was ended by an outage of the store',
      lost.map((word) => ({ text: `${word.of} ${word.cause}` })),
    ),
  };
}

/** Judges that each fault was done. Some need a moment that may not come. */
function judgeHit({ of }: Evidence): Judged {
  const skipped = of('skipped').map(({ id, kind, why }) => ({ text: `${kind} ${id}: ${why}` }));
  const count = of('fault').length;
  return {
    looked: count,
    findings: find('a fault that was not done', skipped),
    says: `${count - skipped.length} of ${count} done`,
  };
}

function judgeCounters({ of }: Evidence): Judged {
  const keys = of('audited').reduce((sum, audited) => sum + audited.keys, 0);
  const miscounts = of('miscount').map(({ what }) => ({ text: what }));
  return { looked: keys, findings: find('a counter that is not what is there', miscounts), says: `${keys} keys` };
}

// Judges whether relays noticed each loss of confirmed data, and reported it.

/** The faults that make the store lose confirmed data, in a plan that promises that each loss is noticed. */
const LOSSES = ['redis-kill', 'redis-cut', 'redis-failover', 'relay-power'] as const;
/** The time after a loss within which waiting callers must be answered, in milliseconds. */
const ANSWER_DELAY_MS = 5_000;

/**
 * Judges by the relays' own reports whether they noticed each loss. A relay notices a loss when the store does not know
 * a number that the store had confirmed. So each report shows a loss of confirmed data.
 */
function judgeNoticed({ of, faults }: Evidence): Judged {
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
 * Judges two rules. Callers who waited on a relay when it noticed a loss are answered within five seconds, or if the
 * store goes away again in that time, within five seconds after it is back. This does not hold for a command that the
 * store admitted again after the loss, because the wait goes on with the new record. No caller gets `completed` for a
 * command that no client ran.
 */
function judgeAnswered({ cases, of, faults, admittedAt }: Evidence): Judged {
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

// Judges what a data directory promises.

/** The time by which a sync may be later than DATA_SYNC says because of a busy machine, in milliseconds. */
const SYNC_LATE_MS = 1_000;
/** The time after which a relay must admit commands again once its disk has room, in milliseconds. */
const ROOM_NOTICED_MS = 5_000;

/**
 * Judges which answers a loss of power took back. Whatever a caller knew when the last sync began is kept. What is lost
 * is not older than DATA_SYNC and the duration of a sync; with `always` nothing is lost.
 */
function judgeKept(evidence: Evidence): Judged {
  const losses = evidence.of('power');
  // An unknown outcome promises nothing, and may come from the caller's library, which finds no record.
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

/** Returns whether the record of the command says at least what the answer said. */
function isOnRecord({ final }: Evidence, one: Case, answer: ReturnType<typeof answersOf>[number]): boolean {
  const record = final(one);
  if (!record) return false;
  return answer.outcome === 'pending' || (record.outcome === answer.outcome && record.execution === answer.execution);
}

function judgeFull({ cases, of, faults }: Evidence): Judged {
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

function judgeShut({ of }: Evidence): Judged {
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

// Judges what arrived at clients: nothing twice, and nothing that runs after its deadline.

/** The time by which a caller may know of a deadline earlier than the client, in milliseconds, on a busy machine. */
const KNOWN_EARLIER_MS = 1_000;

/** Judges that no command that arrived at its client was written to a link again. */
function judgeUnrepeated({ cases, of }: Evidence): Judged {
  const all = [...cases.values()];
  const arrived = all.filter(({ arrivals }) => arrivals.length > 0);
  return {
    looked: of('arrival').length,
    findings: find(
      'written again though it had arrived',
      all.filter(({ arrivals }) => arrivals.length > 1),
    ),
    says: `${of('arrival').length} arrivals of ${arrived.length} commands`,
  };
}

/** The time after a late hello in which it would take a later link away, in milliseconds. */
const TAKEN_MS = 1_000;

/** Judges that hellos which arrive late take no later link of their clients away. */
function judgeOrdered({ of }: Evidence): Judged {
  const hellos = of('late-hellos');
  const taken = of('link').filter(
    ({ up, at }) => !up && hellos.some((late) => late.at <= at && at <= late.at + TAKEN_MS * MS),
  );
  return {
    looked: hellos.length,
    findings: find(
      'a link that a late hello took away',
      taken.map(({ user, client }) => ({ text: `${user}/${client}` })),
    ),
    says: `${hellos.reduce((sum, { count }) => sum + count, 0)} late hellos`,
  };
}

/**
 * Judges that no handler began after the deadline of its command: neither by the time that it was told, nor by the time
 * at which a caller learned the end.
 */
function judgeTimely(evidence: Evidence): Judged {
  const begun = [...evidence.cases.values()].flatMap((one) => one.runs.map((run) => ({ ...one, run })));
  const refused = [...evidence.cases.values()].filter((one) => evidence.final(one)?.late && one.runs.length === 0);
  const least = Math.min(Infinity, ...begun.map(({ run }) => run.leftMs));
  return {
    looked: begun.length,
    findings: [
      ...find(
        'began without time',
        begun.filter(({ run }) => run.leftMs <= 0),
      ),
      ...find(
        'began though a caller had its end',
        begun.filter((one) => one.run.at > (verdictsOf(one)[0]?.at ?? Infinity) + KNOWN_EARLIER_MS * MS),
      ),
    ],
    says: `${begun.length} runs, each with ${least.toFixed(0)} ms or more; ${refused.length} never ran and were refused late`,
  };
}

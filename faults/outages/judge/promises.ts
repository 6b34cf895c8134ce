/** Judges the promises that some plans make in addition to the invariants. */
import { judgeAimed } from './aimed.ts';
import { judgeOrdered, judgeTimely, judgeUnrepeated } from './arrivals.ts';
import { judgeFull, judgeKept, judgeShut } from './data-directory.ts';
import { type Evidence, MS } from './evidence.ts';
import { find, type Judged } from './finding.ts';
import { judgeAnswered, judgeNoticed } from './losses.ts';
import { KILLS, judgeReattached, judgeRecovery } from './recovery.ts';
import { judgePaused, judgeRevoked } from './stops.ts';
import { judgeSurvivor } from './survivor.ts';
import { judgeUnfenced } from './unfenced.ts';

/** The names of the promises that a plan may make in addition to the invariants. */
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
  'paused',
  'revoked',
] as const;
export type PromiseName = (typeof PROMISE_NAMES)[number];

/** The expectations by which a run is judged. They depend on its plan. */
export type Expectation = {
  /** Whether faults made the store lose data, so that admitted commands may be missing. */
  readonly loss: boolean;
  /**
   * Whether an owner may be away for longer than its lease. Everything that it decided but did not record is then lost,
   * and waiting callers are told that the outcome is unknown. Such an answer does not confirm the command. Default
   * false.
   */
  readonly unrecorded?: boolean;
  /** The promises of the plan, which are judged in addition to the invariants. */
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
  { name: 'paused', says: 'nothing that a pause covers is written from its answer until its end', judge: judgePaused },
  { name: 'revoked', says: 'no node that a revocation names admits anything of its token', judge: judgeRevoked },
];

/** How much longer than its limit a wait may take on a busy machine, in milliseconds. */
const OVER_MS = 2_000;
/** The faults that stop a relay, and with it the timers of its waits. */
const PAUSES = ['relay-pause', 'relay-swap'] as const;
/** The fault that kills every relay at once. */
const ALL_KILLED = 'relays-kill';
/** The fault that kills all relays except its target. */
const ALL_BUT_ONE_KILLED = 'relays-full';

/**
 * The timeout for a caller on a link to repeat its request after its relay is back, in milliseconds. The caller's wait
 * then begins again.
 */
const ASKED_ANEW_MS = 5_000;

/** Judges that waits end in time. Time in which the requested relay was stopped or gone does not count. */
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
      // With a revoked token, a caller gets no answer and waits until its own time limit.
      if (!end || attempt.token !== undefined) return [];
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
 * Judges that a stopping relay finishes its commands. In such a plan, handlers take less than the ten seconds that the
 * relay waits for them. Only the stopping relay answers `draining`, and refused callers try the other relays.
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
 * The part of the lease that certainly remains when a process is stopped, in milliseconds. The lease of 8 s is renewed
 * every 2 s, so at least 6 s remain, of which one second is left for delays of a busy machine.
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
 * Judges the time after Redis was unavailable for all relays. A relay that recovers first must not treat a relay as
 * lost that has not recovered yet.
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

/** Judges that each fault was carried out. Some faults need a moment that may not occur. */
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

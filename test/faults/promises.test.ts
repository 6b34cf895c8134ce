/** Tests the promises of plans, each tried with logs that keep it and logs that break it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { check } from '../../faults/outages/judge/checker.ts';
import { readComplaints } from '../../faults/outages/log/complaints.ts';
import { ROLES, type FaultEvent, type Logged, type Work } from '../../faults/outages/log/events.ts';
import { PROMISE_NAMES, PROMISES, type PromiseName } from '../../faults/outages/judge/promises.ts';
import { after, ANN, answer, attempt, changed, INSTANCE, later, storyWith, without } from './kit/story.ts';
import { BROKEN_STOPS, KEPT_STOPS } from './kit/stop-stories.ts';

const annAttempt = { event: 'attempt', user: 'ann' };
const annRun = { event: 'run-begin', user: 'ann' };
const annAnswer = { event: 'answer', user: 'ann' };
const annRecord = { event: 'record', user: 'ann' };
const LOAD = { event: 'phase', phase: 'load' };
const UNKNOWN = { outcome: 'outcome_unknown', execution: 'may_have_run', canary: null, by: null };
const heal: FaultEvent = { event: 'heal', id: 1 };
const lost: FaultEvent = { event: 'lost', of: 'a', cause: 'store_lost' };

function fault(kind: string, target = 'a', id = 1): FaultEvent {
  return { event: 'fault', id, kind, target };
}

function link(up: boolean): FaultEvent {
  return { event: 'link', user: 'ann', client: 'desk', instance: INSTANCE, up };
}

function twin(first: 'live' | 'paused', came: 'in' | 'refused', afterMs = 9_000): FaultEvent {
  return { event: 'twin', of: 'a', first, came, afterMs };
}

function payload(state: 'whole' | 'unavailable' | 'wrong'): FaultEvent {
  return { event: 'payload', ...ANN, kind: 'result', state };
}

/** The end of ann's command reached its caller at 7 ms; the relay was killed at 8 ms. */
function power(keptUntilMs: number, withinMs: number | null): FaultEvent {
  return { event: 'power', of: 'a', killedAt: 8e6, keptUntil: keptUntilMs * 1e6, withinMs };
}

const hellos: FaultEvent = { event: 'late-hellos', count: 24 };
const arrival: FaultEvent = { event: 'arrival', ...ANN, instance: INSTANCE };
const diskFull = after(LOAD, fault('data-full', '0'), heal);
const shut = (why: string | null) => after(LOAD, { event: 'shut', of: 'a', why });
const askedAgain = { ...attempt(ANN, 'c1.again1'), how: 'attach' } as const;
const kill = after(annAttempt, fault('relay-kill'), heal);
const killAtWork = after(annRun, fault('relay-kill'), link(false), heal);
const cut = after(LOAD, fault('redis-cut', '0'), heal);
/** Returns a cut that began at this time of the system clock, in milliseconds. */
const cutAt = (wall: number) => after(LOAD, { ...fault('redis-cut', '0'), wall } as FaultEvent, heal);
const pause = after(LOAD, fault('redis-pause', '0'), heal);
const stop = after(LOAD, fault('relay-drain'), heal);
const flip = after(LOAD, fault('spill-flip', '0'), heal);
const answeredUnknown = changed(annAnswer, UNKNOWN);
const endedUnknown = changed(annRecord, { outcome: UNKNOWN.outcome, execution: UNKNOWN.execution });
const refused = (code: string) => after(annAttempt, attempt(ANN, 'w5'), { event: 'refused', ...ANN, wait: 'w5', code });

const fenced: FaultEvent = { event: 'fenced', of: 'a', what: 'lease' };
const turns = (of: string, turnMs: number, stalledMs: number): FaultEvent => ({
  event: 'turns',
  of,
  turnMs,
  stalledMs,
});
const memory = (mib: number): FaultEvent => {
  return { event: 'memory', of: 'a.1', resident: 0, live: mib * 2 ** 20, keepsRecords: true };
};
const gap: FaultEvent = { event: 'gap', list: '/history/messages', reason: 'evicted' };
/** The relay a is left of several that held this much each, and holds `mib` then. */
const survives = (mib: number, ...more: readonly FaultEvent[]) =>
  after(LOAD, memory(50), fault('relays-full'), memory(mib), ...more, heal);
const missed: FaultEvent = { event: 'skipped', id: 1, kind: 'handover-failover', why: 'no partition moved' };

type Reported = readonly [says: string, promise: PromiseName, events: () => readonly Logged[]];

/** The calls of a run go to another relay than the owner's. */
const foreign = changed({ event: 'attempt' }, { owner: 'b' });
/** Three kills, and the fault of one of them. */
function aimedKills(...works: readonly (Work | null)[]) {
  const hits = ROLES.map((role, i): FaultEvent => {
    return { event: 'aimed', id: i + 1, role, work: works[i] ?? null, step: null };
  });
  return after(LOAD, ...hits);
}
const aimed = aimedKills('takeover', null, 'snapshot');
/** A kill of the relay before the command of a user has reached its client, and its unknown end. */
const unknownOf = (user: string) => [
  without({ event: 'run-begin', user }),
  without({ event: 'run-end', user }),
  changed({ event: 'answer', user }, UNKNOWN),
  changed({ event: 'record', user }, { outcome: 'outcome_unknown', execution: 'may_have_run' }),
  after({ event: 'attempt', user }, fault('relay-kill', 'a', user === 'ann' ? 1 : 2)),
];

const BROKEN: readonly (readonly [...Reported, what: string])[] = [
  ...BROKEN_STOPS,
  ['a wait of 33 s with a budget of 30', 'prompt', () => storyWith(later(annAnswer, 33_000)), 'a wait that hung'],
  [
    'a caller of a killed relay who gets the outcome after 16 s',
    'recovery',
    () => storyWith(kill, later(annRun, 16_000)),
    'did not go on within 15 s',
  ],
  [
    'a client at work whose link was back after 16 s',
    'recovery',
    () =>
      storyWith(
        killAtWork,
        after({ event: 'run-end', user: 'ann' }, link(true)),
        later({ event: 'run-end', user: 'ann' }, 16_000),
      ),
    'did not go on within 15 s',
  ],
  [
    'a repeated request that finds nothing',
    'reattached',
    () => storyWith(after(annAnswer, askedAgain, { event: 'refused', ...ANN, wait: 'c1.again1', code: 'not_found' })),
    'a recorded end that a relay did not return',
  ],
  ['a cut that no relay noticed', 'noticed', () => storyWith(cut), 'a loss that no relay noticed'],
  [
    'a relay that was fenced, and noticed no loss',
    'noticed',
    () => storyWith(cut, after(annAttempt, { ...lost, cause: 'fenced' })),
    'a loss that no relay noticed',
  ],
  [
    'a caller who is answered 6 s after the loss was noticed',
    'answered',
    () => storyWith(cut, after(annAttempt, lost), later(annAnswer, 6_000)),
    'left waiting after a loss',
  ],
  [
    'a caller who is answered 6 s after the store was back from another loss',
    'answered',
    () =>
      storyWith(
        cut,
        after(annAttempt, lost, fault('redis-kill', '0', 2), { event: 'heal', id: 2 }),
        later({ event: 'heal', id: 2 }, 3_000),
        later(annAnswer, 6_000),
      ),
    'left waiting after a loss',
  ],
  [
    'a caller who is answered 6 s after the loss was noticed, by a command that was admitted before it',
    'answered',
    () =>
      storyWith(
        cutAt(9_000),
        after(annAttempt, lost),
        later(annAnswer, 6_000),
        changed(annRecord, { admittedAt: 5_000 }),
      ),
    'left waiting after a loss',
  ],
  [
    'an end that no client reported',
    'answered',
    () => storyWith(cut, without(annRun), without({ event: 'run-end', user: 'ann' })),
    'reported as completed though no client ran it',
  ],
  [
    'an unknown outcome',
    'drained',
    () => storyWith(stop, answeredUnknown, endedUnknown),
    'an outcome that a stop lost',
  ],
  [
    'a refusal after the stop',
    'drained',
    () => storyWith(stop, refused('draining')),
    'refused though others take work',
  ],
  [
    'a refusal of another kind',
    'drained',
    () => storyWith(after(LOAD, fault('relay-drain')), refused('not_connected')),
    'refused though others take work',
  ],
  [
    'two relays stopped at once',
    'drained',
    () => storyWith(after(LOAD, fault('relay-drain'), fault('relay-drain', 'b', 2), heal, { event: 'heal', id: 2 })),
    'stopped before the previous one was back',
  ],
  ['a second process', 'single', () => storyWith(after(LOAD, twin('live', 'in'))), 'two processes of one node'],
  [
    'a second process after two seconds',
    'single',
    () => storyWith(after(LOAD, twin('paused', 'in', 2_000), { ...lost, cause: 'fenced' })),
    'taken over before the lease was over',
  ],
  [
    'a first process that never noticed',
    'single',
    () => storyWith(after(LOAD, twin('paused', 'in'))),
    'taken over, and the first process never noticed',
  ],
  ['other bytes', 'payloads', () => storyWith(flip, after(annAnswer, payload('wrong'))), 'bytes that were never sent'],
  [
    'a payload that nothing removed and that is missing',
    'payloads',
    () => storyWith(kill, after(annAnswer, payload('unavailable'))),
    'missing though nothing removed it',
  ],
  [
    'a node that was fenced after it',
    'amnesty',
    () => storyWith(pause, after(annAttempt, { ...lost, cause: 'fenced' })),
    'a node that was ended by an outage of the store',
  ],
  [
    'a counter that was not lowered',
    'counters',
    () => storyWith(after({ event: 'cap' }, { event: 'miscount', what: 'q is 7' }, { event: 'audited', keys: 20 })),
    'a counter that is not what is there',
  ],
  [
    'an end that had been synced, and is lost',
    'kept',
    () => storyWith(after(annAnswer, power(7.5, 100)), endedUnknown),
    'lost though it had been synced',
  ],
  [
    'an end that is lost with DATA_SYNC=always',
    'kept',
    () => storyWith(after(annAnswer, power(0, 0)), endedUnknown),
    'lost though it was older than DATA_SYNC allows',
  ],
  ['a full disk that nobody notices', 'full', () => storyWith(diskFull), 'a full disk that refused nothing'],
  [
    'a refusal six seconds after there was room',
    'full',
    () =>
      storyWith(
        diskFull,
        refused('store_full'),
        after(annAnswer, attempt(ANN, 'w6'), { event: 'refused', ...ANN, wait: 'w6', code: 'store_full' }),
        later({ event: 'refused', wait: 'w6' }, 6_000),
      ),
    'refused though the disk had room',
  ],
  [
    'a start on a read-only directory',
    'shut',
    () => storyWith(shut(null)),
    'a start on a read-only directory without its refusal',
  ],
  [
    'a link that falls after late hellos',
    'ordered',
    () => storyWith(after(annAttempt, hellos, link(false))),
    'a link that a late hello took away',
  ],
  [
    'a command that arrives twice',
    'unrepeated',
    () => storyWith(after(annAttempt, arrival, arrival)),
    'written again though it had arrived',
  ],
  [
    'kills that hit no owner at work',
    'aimed',
    () => storyWith(foreign, aimedKills()),
    'too few kills of owners at work',
  ],
  [
    'kills of which ten hit no snapshot',
    'aimed',
    () => {
      const handed: FaultEvent = { event: 'aimed', id: 4, role: 'owner', work: 'handover', step: 'yours' };
      const others = (['caller', 'client'] as const).flatMap((role) =>
        [handed, handed, handed].map((one) => ({ ...one, role })),
      );
      return storyWith(foreign, aimedKills('takeover', 'takeover'), after(LOAD, handed, handed, ...others));
    },
    'a work that no kill hit',
  ],
  [
    'kills of which none hit the relay of a client',
    'aimed',
    () => {
      const more: FaultEvent = { event: 'aimed', id: 4, role: 'owner', work: 'takeover', step: null };
      return storyWith(
        foreign,
        aimed,
        changed({ event: 'aimed', role: 'client' }, { role: 'caller' }),
        after(LOAD, more),
      );
    },
    'a role that too few kills hit',
  ],
  [
    'kills while no call was in progress',
    'aimed',
    () =>
      storyWith(
        foreign,
        aimed,
        changed({ event: 'aimed', role: 'client' }, { role: null }),
        changed({ event: 'aimed', role: 'caller' }, { role: null }),
      ),
    'too few kills while a call was in progress',
  ],
  [
    'calls that are all to the owner',
    'aimed',
    () => storyWith(changed({ event: 'attempt' }, { owner: 'a' }), aimed),
    'too few foreign calls',
  ],
  [
    'more unknown ends than one for two kills',
    'aimed',
    () => storyWith(foreign, aimed, ...unknownOf('ann'), ...unknownOf('ben')),
    'too many ended unknown',
  ],
  [
    'an unknown end without a kill',
    'aimed',
    () => storyWith(foreign, aimed, ...unknownOf('ann').slice(0, -1)),
    'unknown though it was not being written at a kill',
  ],
  [
    'an unknown end of a command that had arrived before the kill',
    'aimed',
    () =>
      storyWith(
        foreign,
        aimed,
        ...unknownOf('ann'),
        after(annAttempt, { event: 'arrival', ...ANN, instance: INSTANCE }),
        later({ event: 'fault' }, 10),
      ),
    'unknown though it was not being written at a kill',
  ],
  [
    'an unknown end of a command that was never marked for its link',
    'aimed',
    () => storyWith(foreign, aimed, ...unknownOf('ann'), changed(annRecord, { dispatched: false })),
    'unknown though it was not being written at a kill',
  ],
  ['a handler without time', 'timely', () => storyWith(changed(annRun, { leftMs: 0 })), 'began without time'],
  [
    'a handler that begins two seconds after its caller was told the end',
    'timely',
    () => storyWith(after(annAttempt, answer(ANN, 'w1', UNKNOWN.outcome)), later(annRun, 2_000)),
    'began though a caller had its end',
  ],
  [
    'a lease that ended without a fault',
    'unfenced',
    () => storyWith(after(LOAD, fenced)),
    'a relay that lost its lease or a partition by itself',
  ],
  [
    'a lease that ended while another relay was stopped',
    'unfenced',
    () => storyWith(after(LOAD, fault('relay-pause', 'b'), fenced, heal)),
    'a relay that lost its lease or a partition by itself',
  ],
  [
    'a lease that ended in a long turn',
    'unfenced',
    () => storyWith(after(LOAD, turns('a.b', 4_000, 4_100), fenced)),
    'a relay that lost its lease or a partition by itself',
  ],
  [
    'a fault that missed',
    'hit',
    () => storyWith(after(LOAD, fault('handover-failover'), missed, heal)),
    'a fault that was not done',
  ],
  [
    'a survivor that keeps all',
    'survivor',
    () => storyWith(survives(90, gap)),
    'a survivor that holds what the others held',
  ],
  [
    'a survivor with a long turn',
    'survivor',
    () => storyWith(survives(52, gap, turns('a.1', 150, 150))),
    'a takeover with a long turn',
  ],
  [
    'a survivor that dropped nothing',
    'survivor',
    () => storyWith(survives(52)),
    'nothing was dropped, so that no relay was full',
  ],
];

const KEPT: readonly Reported[] = [
  ...KEPT_STOPS,
  [
    'a caller who is answered 6 s after the loss was noticed, and 3 s after the store was back from another one',
    'answered',
    () =>
      storyWith(
        cut,
        after(annAttempt, lost, fault('redis-kill', '0', 2), { event: 'heal', id: 2 }),
        later({ event: 'heal', id: 2 }, 3_000),
        later(annAnswer, 3_000),
      ),
  ],
  [
    'a caller who is answered 6 s after the loss was noticed, by a command that was admitted again after it',
    'answered',
    () =>
      storyWith(cutAt(0), after(annAttempt, lost), later(annAnswer, 6_000), changed(annRecord, { admittedAt: 5_000 })),
  ],
  ['a wait of 31 s with a budget of 30', 'prompt', () => storyWith(later(annAnswer, 31_000))],
  [
    'a wait at a relay that was held still',
    'prompt',
    () => storyWith(after(annAttempt, fault('relay-pause')), later(annRun, 40_000), after(annRun, heal)),
  ],
  [
    'a wait at a relay that was gone for a while, whose caller asked again',
    'prompt',
    () => storyWith(after(annAttempt, fault('relay-kill')), later(annRun, 40_000), after(annRun, heal)),
  ],
  [
    'a caller of a killed relay who gets the outcome after 14 s',
    'recovery',
    () => storyWith(kill, later(annRun, 14_000)),
  ],
  [
    'a client at work whose link was back at once',
    'recovery',
    () => storyWith(killAtWork, after({ event: 'heal' }, link(true)), later({ event: 'run-end', user: 'ann' }, 16_000)),
  ],
  [
    'a dispatch that never reached its client, whose link was back at once',
    'recovery',
    () =>
      storyWith(
        after(annAttempt, fault('relay-kill'), link(false), link(true), heal),
        without(annRun),
        without({ event: 'run-end', user: 'ann' }),
        later(annAnswer, 29_000),
        answeredUnknown,
        endedUnknown,
      ),
  ],
  [
    'a repeated request that gets the end',
    'reattached',
    () => storyWith(after(annAnswer, askedAgain, answer(ANN, 'c1.again1'))),
  ],
  ['a cut that a relay noticed', 'noticed', () => storyWith(cut, after(annAttempt, lost))],
  [
    'a caller who is answered 4 s after it',
    'answered',
    () => storyWith(cut, after(annAttempt, lost), later(annAnswer, 4_000)),
  ],
  [
    'a refusal by the relay that stops',
    'drained',
    () => storyWith(after(LOAD, fault('relay-drain')), refused('draining'), after(annAnswer, heal)),
  ],
  ['a second process that is refused', 'single', () => storyWith(after(LOAD, twin('live', 'refused')))],
  [
    'a process that takes over after the lease',
    'single',
    () => storyWith(after(LOAD, twin('paused', 'in'), { ...lost, cause: 'fenced' })),
  ],
  [
    'a payload that is reported as missing',
    'payloads',
    () => storyWith(flip, after(annAnswer, payload('unavailable'))),
  ],
  ['no word of a loss', 'amnesty', () => storyWith(pause)],
  ['an end that had not been synced', 'kept', () => storyWith(after(annAnswer, power(5, 100)), endedUnknown)],
  ['a loss without a bound', 'kept', () => storyWith(after(annAnswer, power(5, null)), endedUnknown)],
  ['a refusal while the disk is full', 'full', () => storyWith(diskFull, refused('store_full'))],
  ['late hellos after which links stay', 'ordered', () => storyWith(after(annAttempt, link(false), hellos))],
  ['a command that arrives once', 'unrepeated', () => storyWith(after(annAttempt, arrival))],
  ['handlers that have time left', 'timely', () => storyWith()],
  ['kills of each role, most at work', 'aimed', () => storyWith(foreign, aimed)],
  [
    'a lease that ended while its relay was stopped',
    'unfenced',
    () => storyWith(after(LOAD, fault('relay-pause'), fenced, heal)),
  ],
  [
    'a lease that ended while Redis was away',
    'unfenced',
    () => storyWith(after(LOAD, fault('redis-kill', '0'), fenced, heal)),
  ],
  [
    'a lease that ended while nothing ran the relay',
    'unfenced',
    () => storyWith(after(LOAD, turns('a.b', 30, 4_000), fenced)),
  ],
  [
    'a lease that ended while nothing ran Redis',
    'unfenced',
    () => storyWith(after(LOAD, turns('redis', 0, 4_000), fenced)),
  ],
  [
    'that its relay was gone for most of it, as all but one',
    'prompt',
    () => storyWith(after(annAttempt, fault('relays-full', 'b')), after(annRun, heal), later(annRun, 60_000)),
  ],
  ['a fault that was done', 'hit', () => storyWith(after(LOAD, fault('handover-failover'), heal))],
  ['a survivor that drops evidence', 'survivor', () => storyWith(survives(52, gap, turns('a.1', 90, 900)))],
  ['a command that was being written at a kill', 'aimed', () => storyWith(foreign, aimed, ...unknownOf('ann'))],
  ['a refused start', 'shut', () => storyWith(shut('The data directory /data cannot be used.'))],
  ['counters that are right', 'counters', () => storyWith(after({ event: 'cap' }, { event: 'audited', keys: 20 }))],
];

describe('a plan', () => {
  const judged = (events: readonly Logged[], promise: PromiseName) =>
    check(events, { loss: true, promises: [promise] }).violations.filter(({ invariant }) => invariant === promise);

  test.each(BROKEN)('does not keep its promise with %s', (_says, promise, events, what) => {
    expect(judged(events(), promise).map((found) => found.what)).toEqual([what]);
  });

  test.each(KEPT)('keeps its promise with %s', (_says, promise, events) => {
    const { violations, unproven, says } = check(events(), { loss: true, promises: [promise] });
    expect([violations.filter(({ invariant }) => invariant === promise), unproven]).toEqual([[], []]);
    if (promise !== 'prompt' && promise !== 'amnesty') expect(says).toHaveLength(1);
  });

  test('is judged by every existing promise, each with logs that keep it and logs that break it', () => {
    expect(PROMISES.map(({ name }) => name)).toEqual(PROMISE_NAMES);
    expect(new Set(BROKEN.map(([, promise]) => promise))).toEqual(new Set(PROMISE_NAMES));
    expect(new Set(KEPT.map(([, promise]) => promise))).toEqual(new Set(PROMISE_NAMES));
  });

  test('proves nothing with logs that lack its evidence', () => {
    // The logs of every run hold waits, runs and processes.
    const some = PROMISE_NAMES.filter((name) => !['prompt', 'timely', 'unfenced'].includes(name));
    expect(check(storyWith(), { loss: false, promises: some }).unproven).toEqual(some);
  });
});

test("relays' reports of a loss enter the logs at their time", () => {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-complaints-'));
  const before = Number(process.hrtime.bigint()) / 1e6;
  const line = { level: 'error', time: new Date().toISOString(), node: 'north', cause: 'store_lost' };
  const loss = JSON.stringify({ ...line, msg: 'this node lost what it held' });
  writeFileSync(
    join(folder, 'north.2.err'),
    `${JSON.stringify({ ...line, msg: 'else' })}\n${loss}\n${loss.slice(0, 90)}`,
  );
  const [found, ...more] = readComplaints(folder);
  rmSync(folder, { recursive: true });
  expect(more).toEqual([]);
  expect(found).toMatchObject({ proc: 'north', boot: '2', event: 'lost', of: 'north', cause: 'store_lost' });
  const at = (found?.at ?? 0) / 1e6;
  // The two clocks tick differently: the wall clock in whole milliseconds.
  expect(at).toBeGreaterThan(before - 100);
  expect(at).toBeLessThan(Number(process.hrtime.bigint()) / 1e6 + 100);
});

test('reports of relays that could not keep their partitions enter the logs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-complaints-'));
  const texts = [
    'the lease of this relay ended before it was renewed',
    'another relay owns a partition that was of this one',
  ];
  const lines = texts.map((msg) => JSON.stringify({ level: 'warn', time: new Date().toISOString(), msg }));
  writeFileSync(join(folder, 'north.2.err'), lines.join('\n'));
  const found = readComplaints(folder);
  rmSync(folder, { recursive: true });
  expect(found).toMatchObject([
    { boot: '2', event: 'fenced', of: 'north', what: 'lease' },
    { boot: '2', event: 'fenced', of: 'north', what: 'partition' },
  ]);
});

test('a command that was admitted only after the kill does not count as held by the killed relay', () => {
  const killed = after(annAttempt, { event: 'fault', id: 1, kind: 'relay-kill', target: 'a', wall: 2_000 }, heal);
  const looked = (admittedAt: number) => {
    const events = storyWith(killed, later(annRun, 16_000), changed(annRecord, { admittedAt }));
    return check(events, { loss: false, promises: ['recovery'] }).looked['recovery'];
  };
  expect([looked(1_000), looked(3_000)]).toEqual([1, 0]);
});

test('the time of a command begins with its admission', () => {
  const killed = after(annAttempt, { event: 'fault', id: 1, kind: 'relay-kill', target: 'a', wall: 2_000 }, heal);
  const found = (admittedAt: number) => {
    const events = storyWith(killed, later(annRun, 46_000), changed(annRecord, { admittedAt }));
    return check(events, { loss: false }).violations.filter(({ what }) => what === 'ended too late').length;
  };
  expect([found(2_000), found(22_000)]).toEqual([1, 0]);
});

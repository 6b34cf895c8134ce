/** Tests that the checker of the fault runs finds each kind of violation, and accepts correct runs. */
import { describe, expect, test } from 'vitest';
import { check, type Report } from '../../faults/outages/judge/checker.ts';
import { canaryOf, type Logged } from '../../faults/outages/log/events.ts';
import { INVARIANTS } from '../../faults/outages/judge/invariants.ts';
import { parseLog } from '../../faults/outages/log/log.ts';
import {
  after,
  ANN,
  answer,
  attempt,
  BEN,
  changed,
  goodRun,
  INSTANCE,
  later,
  record,
  run,
  storyWith,
  type Change,
  without,
} from './kit/story.ts';

const MIB = 1024 * 1024;
const annRecord = { event: 'record', user: 'ann' };
const annAnswer = { event: 'answer', user: 'ann' };
const annRun = { event: 'run-begin', user: 'ann' };
const ANN_ID = 'ann/desk/c1';

/** A log that breaks exactly one invariant, and the expected finding. */
type Broken = readonly [says: string, invariant: string, what: string, events: () => readonly Logged[], id?: string];

const unanswered = without(annAnswer);
/** The changes of the log after which no client has run ann's command. */
const neverRan = [without(annRun), without({ event: 'run-end', user: 'ann' })] as const;
const expired = changed(annRecord, { outcome: 'expired', execution: 'not_written', dispatched: false, bound: null });
const answeredExpired = changed(annAnswer, { outcome: 'expired', execution: 'not_written', canary: null, by: null });
const unknown = [
  changed(annRecord, { outcome: 'outcome_unknown', execution: 'may_have_run' }),
  changed(annAnswer, { outcome: 'outcome_unknown', execution: 'may_have_run', canary: null, by: null }),
] as const;
const fault = { event: 'fault', id: 1, kind: 'relay-kill', target: 'a' } as const;

const BROKEN: readonly Broken[] = [
  [
    'a command that is still live at the end',
    'I1',
    'admitted and never ended',
    () =>
      storyWith(
        changed(annAnswer, { outcome: 'pending', canary: null, by: null }),
        changed(annRecord, { stage: 'dispatched', outcome: null }),
        after({ event: 'reservations-read' }, { event: 'reservation', scope: 'ann', reserved: 1 }),
      ),
  ],
  ['an end long after its time', 'I1', 'ended too late', () => storyWith(later(annRun, 46_000))],
  [
    'a command that expired beside its connected client',
    'I1',
    'not brought to a client that was connected all the time',
    () => storyWith(later({ event: 'phase', phase: 'load' }, 2_000), ...neverRan, expired, answeredExpired),
  ],
  [
    'a command that expired long after a fault was over',
    'I1',
    'not brought to a client that was connected all the time',
    () =>
      storyWith(
        later({ event: 'phase', phase: 'load' }, 2_000),
        ...neverRan,
        expired,
        answeredExpired,
        after({ event: 'link', user: 'ben' }, fault, { event: 'heal', id: 1 }),
        later(annAnswer, 21_000),
      ),
  ],
  [
    'a refusal as not connected beside the connected client',
    'I1',
    'not brought to a client that was connected all the time',
    () =>
      storyWith(
        later({ event: 'phase', phase: 'load' }, 2_000),
        ...neverRan,
        without(annRecord),
        changed(annAnswer, { event: 'refused', code: 'not_connected' }),
      ),
  ],
  ['an admitted command without a record', 'I2', 'lost', () => storyWith(without(annRecord))],
  [
    'a record that no caller requested',
    'I2',
    'unexpected',
    () => storyWith(without({ event: 'attempt', user: 'ann' }), unanswered),
  ],
  [
    'a record of a command that was refused',
    'I2',
    'unexpected',
    () => storyWith(changed(annAnswer, { event: 'refused', code: 'capacity_exceeded' })),
  ],
  [
    'an end that changed between two readings',
    'I3',
    'an end that changed',
    () => storyWith(after({ event: 'phase', phase: 'load' }, record(ANN, 'outcome_unknown'))),
  ],
  [
    'two ends in the history',
    'I3',
    'more than one end in its history',
    () => storyWith(changed({ event: 'ends', user: 'ann' }, { rows: 2 })),
  ],
  [
    'an end that is counted as a late one as well',
    'I3',
    'its only end is counted as another one too',
    () => storyWith(changed(annRecord, { late: 1 })),
  ],
  ['a wait that hangs', 'I4', 'a wait that was never answered', () => storyWith(unanswered), `${ANN_ID} w1`],
  [
    'a wait that is answered twice',
    'I4',
    'a wait that was answered more than once',
    () => storyWith(after(annAnswer, answer(ANN, 'w1'))),
    `${ANN_ID} w1`,
  ],
  [
    'an answer to a wait that is not',
    'I4',
    'an answer without a wait',
    () => storyWith(after(annAnswer, answer(ANN, 'w9'))),
  ],
  [
    'an answer that the record denies',
    'I4',
    'an answer that differs from the record',
    () =>
      storyWith(changed(annAnswer, { outcome: 'outcome_unknown', execution: 'may_have_run', canary: null, by: null })),
  ],
  [
    'a second wait that is left until its time is over',
    'I4',
    'left waiting though the command had ended',
    () =>
      storyWith(
        after(annRun, attempt(ANN, 'w3')),
        later({ event: 'cap' }, 20_000),
        after({ event: 'cap' }, answer(ANN, 'w3', 'pending')),
      ),
    `${ANN_ID} w3`,
  ],
  [
    'a wait that is left long after a fault was over',
    'I4',
    'left waiting though the command had ended',
    () =>
      storyWith(
        after(annRun, attempt(ANN, 'w3'), fault, { event: 'heal', id: 1 }),
        later({ event: 'cap' }, 21_000),
        after({ event: 'cap' }, answer(ANN, 'w3', 'pending')),
      ),
    `${ANN_ID} w3`,
  ],
  [
    'an answer before the end was recorded',
    'I4',
    'an answer before the end was recorded',
    () => storyWith(later({ event: 'cap' }, 100), after({ event: 'cap' }, { event: 'live', ...ANN, since: 50e6 })),
  ],
  [
    'the only wait, left until its time is over',
    'I4',
    'left waiting though the command had ended',
    () =>
      storyWith(
        changed(annAnswer, { outcome: 'pending', canary: null, by: null }),
        later(annAnswer, 20_000),
        after(annAnswer, attempt(ANN, 'w3'), answer(ANN, 'w3')),
      ),
    `${ANN_ID} w1`,
  ],
  [
    'an end that only the time of its wait brought to light',
    'I4',
    'left waiting though the command had ended',
    () => storyWith(later(annAnswer, 20_000)),
    `${ANN_ID} w1`,
  ],
  ['a handler that began twice', 'I5', 'ran more than once', () => storyWith(after(annRun, run(ANN)))],
  [
    'a reservation that leaked',
    'I6',
    'reservations that are not the live records',
    () => storyWith(after({ event: 'reservations-read' }, { event: 'reservation', scope: 'ann', reserved: 1 })),
    'ann: 1 reserved, 0 live',
  ],
  [
    'a reservation freed twice',
    'I6',
    'reservations that are not the live records',
    () => storyWith(after({ event: 'reservations-read' }, { event: 'reservation', scope: 'ann', reserved: -1 })),
    'ann: -1 reserved, 0 live',
  ],
  [
    'a reservation freed before its command has ended',
    'I6',
    'reservations that were not the live records',
    () => storyWith(after(annRun, { event: 'count', scope: 'ann', live: 2, reserved: 1 })),
    'ann: 1 reserved, 2 live',
  ],
  [
    'a result of an instance that the command was not bound to',
    'I7',
    'a result of another instance',
    () => storyWith(changed(annAnswer, { by: 'i2' })),
  ],
  [
    'an end by an instance that never ran it',
    'I7',
    'bound to one that never ran it',
    () => storyWith(changed(annRecord, { bound: 'i2' }), changed(annAnswer, { by: 'i2' })),
  ],
  [
    'a run of a command that is recorded as never written',
    'I8',
    'ran though it is proven not to have',
    () => storyWith(without({ event: 'link', user: 'ann' }), expired, answeredExpired),
  ],
  [
    'a run of a command that was refused',
    'I8',
    'ran though it is proven not to have',
    () => storyWith(changed(annAnswer, { event: 'refused', code: 'capacity_exceeded' }), without(annRecord)),
  ],
  ['a completion that no client reported', 'I8', 'completed though no client ran it', () => storyWith(...neverRan)],
  [
    'a socket write before the mark',
    'I8',
    'ran without a dispatch on record',
    () => storyWith(...unknown, changed(annRecord, { dispatched: false, bound: null })),
  ],
  [
    "a result with another user's payload",
    'I9',
    'a payload of another command',
    () => storyWith(changed(annAnswer, { canary: canaryOf(BEN) })),
  ],
  [
    "a handler that was given another command's params",
    'I9',
    'a payload of another command',
    () => storyWith(changed(annRun, { canary: canaryOf({ user: 'ann', command: 'c7' }) })),
  ],
  [
    "a history that shows another user's payload",
    'I9',
    "another user's payload",
    () => storyWith(changed({ event: 'seen' }, { canary: canaryOf(BEN) })),
    `ann on history: ${canaryOf(BEN)}`,
  ],
  [
    'a sample beyond its size',
    'I10',
    'a bound that was passed',
    () => storyWith(changed({ event: 'cap' }, { value: 1001 })),
    'summary sample: 1001 of 1000',
  ],
  [
    'a window that is too wide',
    'I10',
    'more in flight than the window holds',
    () => storyWith(after({ event: 'phase', phase: 'load' }, ...crowd(33))),
    'ann/desk/i9: 33',
  ],
  [
    'a process that is too large',
    'I11',
    'more memory than allowed',
    () => storyWith(changed({ event: 'memory' }, { resident: 513 * MIB })),
    'a',
  ],
  [
    'memory that grows to the end',
    'I11',
    'memory that grows',
    () => storyWith(after({ event: 'cap' }, ...growth(2)), changed({ event: 'phase', phase: 'quiet' }, { at: HOUR })),
    'grower',
  ],
  [
    'memory that grows much in a short run',
    'I11',
    'memory that grows',
    () =>
      storyWith(after({ event: 'cap' }, ...growth(2.4, 5)), changed({ event: 'phase', phase: 'quiet' }, { at: HOUR })),
    'grower',
  ],
  [
    'memory of a relay that keeps the records, which grows by more than they need',
    'I11',
    'memory that grows',
    () =>
      storyWith(
        after({ event: 'cap' }, ...growth(2, 15, { keepsRecords: true })),
        changed({ event: 'phase', phase: 'quiet' }, { at: HOUR }),
      ),
    'grower',
  ],
  [
    'a key that nothing will ever remove',
    'I11',
    'a key without an expiry',
    () => storyWith(after({ event: 'cap' }, { event: 'leftover', key: 'k' })),
    'k',
  ],
  ['a waiter that stays', 'I12', 'waiters left', () => storyWith(changed({ event: 'idle' }, { waiters: 1 })), 'a'],
  [
    'a command that stays',
    'I12',
    'commands left on a node',
    () => storyWith(changed({ event: 'idle' }, { unfinished: 1 })),
    'a',
  ],
  ['a socket that stays', 'I12', 'sockets left', () => storyWith(changed({ event: 'idle' }, { sockets: 4 })), 'a'],
  [
    'a relay that exits although nothing ended it',
    'I13',
    'a relay ended by itself',
    () => storyWith(changed({ event: 'process' }, { by: 'itself', code: 1 })),
    'a.1 (exit code 1)',
  ],
  [
    'a relay that crashes while it stops',
    'I13',
    'a relay that was asked to stop did not end with exit code 0',
    () => storyWith(changed({ event: 'process' }, { by: 'stop', code: 70 })),
    'a.1 (exit code 70)',
  ],
];

/** Returns the log of commands that run at the same time on one client, and that are otherwise correct. */
function crowd(size: number) {
  const keys = Array.from({ length: size }, (_, n) => ({ ...ANN, command: `m${n}` }));
  return keys
    .flatMap((key) => [attempt(key, key.command), run(key, 'i9')])
    .concat(
      keys.flatMap((key) => [
        { event: 'run-end', ...key, instance: 'i9' } as const,
        { event: 'broken', ...key, wait: key.command, code: 'unreachable' } as const,
      ]),
    );
}

/** One hour in nanoseconds. It is longer than the time that `growth` covers. */
const HOUR = 3_600e9;

function growth(mibPerMinute: number, minutes = 15, { keepsRecords = false } = {}) {
  return Array.from({ length: 4 * minutes }, (_, n) => ({
    event: 'memory' as const,
    of: 'grower',
    resident: 200 * MIB,
    live: (100 + (n * mibPerMinute) / 4) * MIB,
    keepsRecords,
    // The stamps are written by hand: one sample every 15 s.
    at: n * 15e9,
  }));
}

/** Calls over 15 minutes, each refused, whose records would take 2 MiB a minute. */
function refusedCalls() {
  return Array.from({ length: 15 * 1024 }, (_, n) => {
    const key = { ...ANN, command: `n${n}` };
    const at = (n * 60e9) / 1024;
    const refused = { event: 'refused', ...key, wait: key.command, code: 'capacity_exceeded' } as const;
    return [
      { ...attempt(key, key.command), at },
      { ...refused, at },
    ];
  }).flat();
}

const violated = ({ violations }: Report): readonly string[] => [
  ...new Set(violations.map(({ invariant }) => invariant)),
];

describe('the checker', () => {
  test('accepts a run without faults', () => {
    expect(check(goodRun())).toMatchObject({
      green: true,
      violations: [],
      unproven: [],
      counts: { attempts: 2, ok: 2, lost: 0, unexpected: 0, recovered: 0, unknown: 0, late: 0, duplicates: 0 },
      outcomes: { completed: 2 },
    });
  });

  const rows = BROKEN.map(([says, invariant, what, events, id = ANN_ID]) => ({ says, invariant, what, events, id }));
  test.each(rows)('finds $says ($invariant: $what)', ({ invariant, what, events, id }) => {
    const report = check(events());
    expect(report.green).toBe(false);
    expect(violated(report)).toEqual([invariant]);
    const found = report.violations.find((violation) => violation.what === what);
    expect(found?.ids).toContain(id);
  });

  test('is tried with a log that breaks each invariant', () => {
    expect([...new Set(BROKEN.map(([, invariant]) => invariant))]).toEqual(INVARIANTS.map(({ name }) => name));
  });

  const QUIET: readonly (readonly [string, () => readonly Logged[]])[] = [
    ['an end just within its time', () => storyWith(later(annRun, 44_000))],
    [
      'an expiry while the client was away',
      () => storyWith(without({ event: 'link', user: 'ann' }), ...neverRan, expired, answeredExpired),
    ],
    [
      'an expiry that a pause explains',
      () =>
        storyWith(
          later({ event: 'phase', phase: 'load' }, 2_000),
          ...neverRan,
          expired,
          answeredExpired,
          changed(annAnswer, { code: 'paused' }),
        ),
    ],
    [
      'an expiry that a fault explains',
      () =>
        storyWith(
          later({ event: 'phase', phase: 'load' }, 2_000),
          ...neverRan,
          expired,
          answeredExpired,
          after({ event: 'link', user: 'ben' }, fault),
        ),
    ],
    [
      'a wait that broke',
      () => storyWith(after(annRun, attempt(ANN, 'w3'), { event: 'broken', ...ANN, wait: 'w3', code: 'unreachable' })),
    ],
    [
      'a wait that a fault left until its time was over',
      () =>
        storyWith(
          after(annRun, attempt(ANN, 'w3'), fault, { event: 'heal', id: 1 }),
          later({ event: 'cap' }, 10_000),
          after({ event: 'cap' }, answer(ANN, 'w3', 'pending')),
        ),
    ],
    ['an unknown outcome of a command that ran', () => storyWith(...unknown)],
    ['two readings of the same end', () => storyWith(after(annAnswer, record(ANN)))],
    ['an earlier reading while it was live', () => storyWith(after(annRun, record(ANN, null)))],
    ['a result that came late', () => storyWith(...unknown, changed(annRecord, { late: 1 }))],
    ['a reading that began before the end', () => storyWith(after(annAnswer, { event: 'live', ...ANN, since: 1 }))],
    [
      'live commands that are all reserved',
      () => storyWith(after(annRun, { event: 'count', scope: 'ann', live: 2, reserved: 2 })),
    ],
    ['a window that is full', () => storyWith(after({ event: 'phase', phase: 'load' }, ...crowd(32)))],
    [
      'memory that grows no more than it may',
      () =>
        storyWith(after({ event: 'cap' }, ...growth(0.5)), changed({ event: 'phase', phase: 'quiet' }, { at: HOUR })),
    ],
    [
      'memory that grows by less than its noise',
      () =>
        storyWith(
          after({ event: 'cap' }, ...growth(1.4, 5)),
          changed({ event: 'phase', phase: 'quiet' }, { at: HOUR }),
        ),
    ],
    [
      'memory of a relay that keeps the records, which grows by what they need',
      () =>
        storyWith(
          after({ event: 'cap' }, ...growth(2, 15, { keepsRecords: true }), ...refusedCalls()),
          changed({ event: 'phase', phase: 'quiet' }, { at: HOUR }),
        ),
    ],
    [
      'memory that grows after the load, while records are read',
      () =>
        storyWith(
          after({ event: 'cap' }, ...growth(2)),
          changed({ event: 'phase', phase: 'quiet' }, { at: HOUR / 60 }),
        ),
    ],
    [
      'a refusal that left no record',
      () =>
        storyWith(...neverRan, without(annRecord), changed(annAnswer, { event: 'refused', code: 'capacity_exceeded' })),
    ],
  ];
  test.each(QUIET)('accepts %s', (_says, events) => {
    expect(check(events())).toMatchObject({ green: true, violations: [] });
  });

  test('distinguishes recovered, unknown, late and refused commands', () => {
    const broke = changed(annAnswer, { event: 'broken', code: 'unreachable' });
    expect(check(storyWith(broke)).counts).toMatchObject({ attempts: 2, ok: 1, recovered: 1, unknown: 0 });
    expect(check(storyWith(broke, without(annRecord), ...neverRan)).counts).toMatchObject({
      ok: 1,
      recovered: 0,
      unknown: 1,
    });
    expect(check(storyWith(changed(annRecord, { late: 2 }))).counts).toMatchObject({ late: 1 });
    const refused = changed(annAnswer, { event: 'refused', code: 'queue_full' });
    expect(check(storyWith(...neverRan, without(annRecord), refused)).counts).toMatchObject({ refused: 1, lost: 0 });
  });

  test('counts losses, and excuses them only if the store was made to lose data', () => {
    const gone = storyWith(without(annRecord));
    expect(check(gone).counts.lost).toBe(1);
    expect(check(gone, { loss: true })).toMatchObject({ green: true, counts: { lost: 1 } });
    expect(check(storyWith(without(annRecord), after(annRun, run(ANN))), { loss: true }).green).toBe(false);
  });

  test('counts an unknown outcome without a record as no loss where owners are away, and every other answer as one', () => {
    const UNKNOWN = { outcome: 'outcome_unknown', execution: 'may_have_run', canary: null, by: null };
    const told = [changed(annAnswer, UNKNOWN), without({ event: 'run-begin', user: 'ann' })] as const;
    const found = (unrecorded: boolean, ...changes: readonly Change[]) =>
      check(storyWith(...changes), { loss: false, unrecorded }).violations.map(({ what }) => what);
    const gone = [...told, without(annRecord), without({ event: 'ends', user: 'ann' })];
    expect([found(false, ...gone), found(true, ...gone)]).toEqual([['lost'], []]);
    const differs = changed(annAnswer, UNKNOWN);
    expect([found(false, differs), found(true, differs)]).toEqual([['an answer that differs from the record'], []]);
    expect(found(true, without(annRecord))).toContain('lost');
  });

  test('does not hold a wait to an end that the store lost before it admitted the command again', () => {
    const left = (admittedAt: number) => {
      const cut = after({ event: 'phase', phase: 'load' }, { ...fault, wall: 0 }, { event: 'heal', id: 1 });
      const events = storyWith(cut, later(annAnswer, 40_000), ...unknown, changed(annRecord, { admittedAt }));
      return check(events, { loss: true }).violations.filter(({ what }) => what.startsWith('left waiting'));
    };
    expect(left(0)).toHaveLength(1);
    expect(left(30_000)).toEqual([]);
  });

  test.each(['read', 'record', 'ends', 'reservations-read', 'idle', 'memory', 'run-begin'] as const)(
    'does not accept a run whose logs hold no %s',
    (missing) => {
      const match = missing === 'read' ? { phase: missing } : { event: missing };
      expect(check(storyWith(without(match))).green).toBe(false);
    },
  );

  test('does not accept an empty log', () => {
    expect(check([])).toMatchObject({ green: false, unproven: INVARIANTS.map(({ name }) => name) });
  });
});

describe('a log', () => {
  const line = (seq: number): string => JSON.stringify({ seq, event: 'heal', id: seq, instance: INSTANCE });

  test('may end in a torn line, and in no other way', () => {
    expect(parseLog(`${line(1)}\n${line(2)}\n{"se`, 'x')).toMatchObject({ events: [{ id: 1 }, { id: 2 }], torn: true });
    expect(() => parseLog(`${line(1)}\n{"se\n${line(2)}\n`, 'x')).toThrow('x:2 is not JSON');
    expect(() => parseLog(`${line(1)}\n${line(3)}\n`, 'x')).toThrow('x:2 is out of order');
  });
});

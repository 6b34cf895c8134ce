/** Tests the rule for equal calls as a table of cases, and what holds of it for any earlier calls. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { settleAnswer } from '../../src/core/commands/answers.ts';
import { OWED_BY_NOBODY, newCommand, type Command } from '../../src/core/commands/command.ts';
import { isSettled, judge, type EarlierCall, type JudgedCall } from '../../src/core/calls/equal-calls.ts';
import { AGENT_LONG_CALL_MS, AGENT_STILL_RUNNING_MS, AGENT_UNARRIVED_MS } from '../../src/core/limits.ts';

const NOW = 10_000_000;

const plain = newCommand(
  {
    ...{ userId: 'alice', clientId: 'tab', commandId: 'c', action: 'open', digest: 'd', scopeId: 'alice' },
    ...{ namedInstanceId: null, clientType: 'browser', caller: { kind: 'user', name: 'alice' } },
    ...{ traceId: null, parentSpanId: null, traceFlags: null, traceState: null, callSpan: null },
    ...{ connectWithinMs: 0, respondWithinMs: 30_000 },
  },
  { nodeId: 'n', instanceId: 'i' },
  NOW - 1_000,
);

type Over = Partial<Command>;
const ENDS: Readonly<Record<string, Over>> = {
  running: { stage: 'dispatched', execution: 'may_have_run' },
  completed: { stage: 'terminal', outcome: 'completed', execution: 'reported_by_client' },
  failed: { stage: 'terminal', outcome: 'failed', execution: 'reported_by_client' },
  refused: { stage: 'terminal', outcome: 'failed', execution: 'refused_by_client' },
  cancelled: { stage: 'terminal', outcome: 'cancelled', execution: 'reported_by_client' },
  'never written': { stage: 'terminal', outcome: 'cancelled', execution: 'not_written' },
  expired: { stage: 'terminal', outcome: 'expired', execution: 'not_written' },
  unknown: { stage: 'terminal', outcome: 'outcome_unknown', execution: 'may_have_run' },
};
type End = keyof typeof ENDS;

function earlier(end: End, over: Over = {}, commandId = 'c'): EarlierCall {
  const of = ENDS[end]!;
  const terminalAt = of.stage === 'terminal' ? NOW - 500 : null;
  return { commandId, command: { ...plain, owedBy: 'n/1', ...of, terminalAt, commandId, ...over }, mark: null };
}

const NEW = { repeatOf: null, harmless: false };
const kindOf = (calls: readonly JudgedCall[], call = NEW as Parameters<typeof judge>[0]) =>
  judge(call, calls, NOW).kind;

describe('the table of cases', () => {
  it.each([
    // what is known, how the earlier call ended, what becomes of the call
    ['none', 'running', 'run'],
    ['none', 'completed', 'run'],
    ['none', 'failed', 'run'],
    ['none', 'refused', 'run'],
    ['none', 'cancelled', 'run'],
    ['none', 'never written', 'run'],
    ['none', 'expired', 'run'],
    ['none', 'unknown', 'refuse'],
    ['lost', 'running', 'attach'],
    ['lost', 'completed', 'attach'],
    ['lost', 'failed', 'attach'],
    ['lost', 'refused', 'run'],
    ['lost', 'cancelled', 'run'],
    ['lost', 'never written', 'run'],
    ['lost', 'expired', 'run'],
    ['lost', 'unknown', 'refuse'],
  ] as const)('evidence: %s; the earlier call: %s; then: %s', (evidence, end, then) => {
    const calls = [{ earlier: earlier(end), evidence }];
    expect(kindOf(calls)).toBe(then);
    expect(kindOf(calls, { repeatOf: null, harmless: true })).toBe('run');
    const isAwaited = evidence === 'lost' && end === 'running';
    expect(kindOf(calls, { repeatOf: 'c', harmless: false })).toBe(isAwaited ? 'attach' : 'run');
  });

  it('the answer of a lost call is given for ten minutes after its end, and until it was written whole', () => {
    const ended = (ago: number, over: Over = {}) => [
      { earlier: earlier('completed', { terminalAt: NOW - ago, ...over }), evidence: 'lost' as const },
    ];
    expect(kindOf(ended(AGENT_UNARRIVED_MS))).toBe('attach');
    expect(kindOf(ended(AGENT_UNARRIVED_MS + 1))).toBe('run');
    expect(kindOf(ended(1, { answeredAt: NOW }))).toBe('run');
  });

  it('an unknown outcome refuses for longer, until a call has named it', () => {
    const ended = (over: Over) => [{ earlier: earlier('unknown', over), evidence: 'none' as const }];
    expect(kindOf(ended({ terminalAt: NOW - 2 * AGENT_UNARRIVED_MS }))).toBe('refuse');
    expect(kindOf(ended({ answeredAt: NOW }))).toBe('run');
  });

  it('takes the first lost call, before it refuses for the sake of another', () => {
    const calls = [
      { earlier: earlier('unknown', {}, 'c1'), evidence: 'none' as const },
      { earlier: earlier('completed', {}, 'c2'), evidence: 'lost' as const },
      { earlier: earlier('running', {}, 'c3'), evidence: 'lost' as const },
    ];
    expect(judge(NEW, calls, NOW)).toMatchObject({ kind: 'attach', earlier: { commandId: 'c2' } });
    expect(judge({ ...NEW, repeatOf: 'c1' }, calls, NOW)).toMatchObject({ kind: 'run', repeats: { commandId: 'c1' } });
    expect(judge({ ...NEW, repeatOf: 'c9' }, calls, NOW)).toMatchObject({
      kind: 'attach',
      earlier: { commandId: 'c2' },
    });
  });

  it('names an earlier call that runs for long, or took long, and no other', () => {
    const ranBeside = (end: End, admittedAgo: number, over: Over = {}) => {
      const calls = [{ earlier: earlier(end, { admittedAt: NOW - admittedAgo, ...over }), evidence: 'none' as const }];
      const judged = judge(NEW, calls, NOW);
      return judged.kind === 'run' ? (judged.ranBeside?.commandId ?? null) : judged.kind;
    };
    expect(ranBeside('running', AGENT_STILL_RUNNING_MS)).toBeNull();
    expect(ranBeside('running', AGENT_STILL_RUNNING_MS + 1)).toBe('c');
    const took = (ms: number) => ({
      terminalAt: NOW - 60_000,
      answeredAt: NOW - 60_000,
      admittedAt: NOW - 60_000 - ms,
    });
    expect(ranBeside('completed', 0, took(AGENT_LONG_CALL_MS))).toBeNull();
    expect(ranBeside('completed', 0, took(AGENT_LONG_CALL_MS + 1))).toBe('c');
    expect(
      ranBeside('completed', 0, { ...took(AGENT_LONG_CALL_MS + 1), terminalAt: NOW - AGENT_UNARRIVED_MS - 1 }),
    ).toBeNull();
  });

  it('a mark gives no evidence, but for an unknown outcome', () => {
    const mark = { outcome: 'completed', execution: 'reported_by_client', errorCode: null } as const;
    const of = { ...mark, endedAt: NOW, resultExpired: false };
    const calls = (over: object) => [
      { earlier: { commandId: 'c', command: null, mark: { ...of, ...over } }, evidence: 'none' as const },
    ];
    expect(kindOf(calls({}))).toBe('run');
    expect(kindOf(calls({ outcome: 'outcome_unknown', execution: 'may_have_run' }))).toBe('refuse');
  });
});

it('the answer of a lost call is owed to the first repeat alone', () => {
  const lost = settleAnswer({ ...plain, owedBy: 'n/1' }, { kind: 'lost', by: 'n/1' }, NOW);
  const taken = settleAnswer(lost, { kind: 'owed', by: 'n/2', instead: OWED_BY_NOBODY }, NOW);
  expect(taken.owedBy).toBe('n/2');
  expect(settleAnswer(taken, { kind: 'owed', by: 'm/1', instead: OWED_BY_NOBODY }, NOW)).toBe(taken);
  expect(settleAnswer(taken, { kind: 'lost', by: 'n/1' }, NOW)).toBe(taken);
});

describe('for any earlier calls', () => {
  const call = fc
    .record({
      end: fc.constantFrom(...Object.keys(ENDS)),
      evidence: fc.constantFrom('none' as const, 'lost' as const),
      answered: fc.boolean(),
      endedAgo: fc.constantFrom(0, AGENT_UNARRIVED_MS, AGENT_UNARRIVED_MS + 1),
      admittedAgo: fc.constantFrom(0, 20_000, 60_000),
    })
    .map(({ end, evidence, answered, endedAgo, admittedAgo }) => {
      const isOver = ENDS[end]?.stage === 'terminal';
      const times = {
        terminalAt: isOver ? NOW - endedAgo : null,
        admittedAt: NOW - (isOver ? endedAgo : 0) - admittedAgo,
      };
      const isAnswered = answered && isOver;
      return {
        earlier: earlier(end, { ...times, ...(isAnswered && { answeredAt: NOW }) }),
        // An answer that was written whole is not lost.
        evidence: isAnswered ? ('none' as const) : evidence,
        end,
        isRecent: !isOver || endedAgo <= AGENT_UNARRIVED_MS,
        isAnswered,
      };
    });
  const calls = fc
    .array(call, { maxLength: 6 })
    .map((list) => list.map((one, i) => ({ ...one, earlier: { ...one.earlier, commandId: `c${i}` } as EarlierCall })));

  it('a call without evidence runs', () => {
    fc.assert(
      fc.property(calls, (given) => {
        const none = given.filter(
          ({ evidence, end, isAnswered }) => evidence === 'none' && (end !== 'unknown' || isAnswered),
        );
        expect(judge(NEW, none, NOW).kind).toBe('run');
      }),
    );
  });

  it('with evidence, nothing that may have run runs again', () => {
    fc.assert(
      fc.property(calls, (given) => {
        const mayHaveRun = given.some(
          ({ evidence, end, isRecent, isAnswered }) =>
            !isAnswered &&
            (end === 'unknown' ||
              (evidence === 'lost' && isRecent && ['running', 'completed', 'failed'].includes(end))),
        );
        expect(judge(NEW, given, NOW).kind === 'run').toBe(!mayHaveRun);
      }),
    );
  });

  it('what is settled changes no judgement, now or later', () => {
    fc.assert(
      fc.property(calls, fc.constantFrom(0, 1, AGENT_UNARRIVED_MS), (given, later) => {
        const open = given.filter(({ earlier: one }) => !isSettled(one, NOW));
        expect(judge(NEW, open, NOW + later)).toEqual(judge(NEW, given, NOW + later));
      }),
    );
  });
});

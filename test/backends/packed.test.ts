/** Tests packed records of ended commands: nothing is lost by packing. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PackedCommand } from '../../src/backends/memory/ledger-packed.ts';
import type { Command } from '../../src/core/commands/command.ts';

const AT = Date.UTC(2026, 0, 1);
const BINDING = { nodeId: 'n1', instanceId: 'i1', epoch: 1 };

/** Returns a command that its client ended with a result. `over` replaces members. */
function ended(over: Partial<Command> = {}): Command {
  const terminalAt = over.terminalAt ?? AT + 30;
  return {
    userId: 'alice',
    clientId: 'c1',
    commandId: 'k1',
    action: 'open',
    digest: 'd',
    scopeId: 'alice',
    namedInstanceId: null,
    clientType: 'mobile',
    caller: { kind: 'user', name: 'alice' },
    traceId: 't1',
    parentSpanId: null,
    traceFlags: '01',
    traceState: null,
    callSpan: null,
    version: 3,
    stage: 'terminal',
    lastProvenStage: (over.acknowledgedAt ?? null) === null ? 'dispatched' : 'acknowledged',
    outcome: 'completed',
    execution: 'reported_by_client',
    error: null,
    reason: null,
    attempts: 1,
    expectedInstanceId: 'i1',
    boundInstanceId: 'i1',
    nodeId: 'n1',
    recoveredFromNodeId: null,
    admittedAt: AT,
    queuedAt: AT,
    dispatchedAt: AT + 10,
    acknowledgedAt: null,
    terminalAt,
    cancelRequestedAt: null,
    connectDeadline: AT,
    deadline: AT + 30_000,
    lateResults: 0,
    firstLate: null,
    resultExpired: false,
    sightings: [{ messageId: 'k1:result:i1', firstSeenAt: terminalAt, lastSeenAt: terminalAt, count: 1 }],
    ...over,
  };
}

function unpacked(command: Command): Command | null {
  const { userId, clientId, commandId, traceId, parentSpanId, traceFlags, traceState, callSpan } = command;
  const trace = { traceId, parentSpanId, traceFlags, traceState, callSpan };
  return PackedCommand.of(command, BINDING)?.unpack({ userId, clientId, commandId, trace }) ?? null;
}

/** For each member of a command, a value that differs from the one that `ended` gives it. */
const OTHERS: Partial<Command> = {
  namedInstanceId: 'i1',
  stage: 'acknowledged',
  lastProvenStage: 'queued',
  outcome: 'failed',
  execution: 'may_have_run',
  error: { code: 'handler_failed', message: '' },
  reason: 'why',
  attempts: 2,
  expectedInstanceId: 'i2',
  boundInstanceId: 'i2',
  nodeId: 'n2',
  recoveredFromNodeId: 'n2',
  admittedAt: AT + 0.5,
  queuedAt: null,
  dispatchedAt: null,
  terminalAt: AT - 1,
  cancelRequestedAt: AT,
  connectDeadline: AT - 1,
  lateResults: 1,
  firstLate: { at: AT, instanceId: 'i2', kind: 'result', digest: 'd' },
  sightings: [],
};

describe('a packed record', () => {
  it('unpacks to the original record', () => {
    const ms = fc.integer({ min: 0, max: 2 ** 40 });
    const time = { dispatched: ms, more: ms, acknowledged: fc.option(ms), connect: ms };
    fc.assert(
      fc.property(fc.record({ ...time, expired: fc.boolean(), digest: fc.string(), version: ms }), (given) => {
        const dispatchedAt = AT + given.dispatched;
        const command = ended({
          dispatchedAt,
          terminalAt: dispatchedAt + given.more,
          acknowledgedAt: given.acknowledged === null ? null : AT + given.acknowledged,
          connectDeadline: AT + given.connect,
          resultExpired: given.expired,
          digest: given.digest,
          version: given.version,
        });
        expect(unpacked(command)).toEqual(command);
      }),
    );
  });

  it.each(Object.entries(OTHERS))('is not created if %s holds something that packing would lose', (member, value) => {
    expect(unpacked(ended({ [member]: value }))).toBeNull();
  });

  it('is not created for an end that was sighted twice, or under another message id, or whose client has another link', () => {
    const seen = ended().sightings[0];
    if (!seen) throw new Error('the command has no sighting');
    expect(unpacked(ended({ sightings: [{ ...seen, count: 2 }] }))).toBeNull();
    expect(unpacked(ended({ sightings: [{ ...seen, lastSeenAt: AT + 31 }] }))).toBeNull();
    expect(unpacked(ended({ sightings: [{ ...seen, messageId: 'k1:result:i2' }] }))).toBeNull();
    expect(unpacked(ended({ sightings: [seen, { ...seen, messageId: 'k1:error:i1' }] }))).toBeNull();
    expect(PackedCommand.of(ended(), null)).toBeNull();
    expect(PackedCommand.of(ended(), { ...BINDING, nodeId: 'n2' })).toBeNull();
  });

  it('returns the time of the end, and that the result has expired', () => {
    const packed = PackedCommand.of(ended(), BINDING);
    expect(packed?.terminalAt).toBe(AT + 30);
    if (packed) packed.resultExpired = true;
    const shared = { userId: 'alice', clientId: 'c1', commandId: 'k1' };
    const trace = { traceId: null, parentSpanId: null, traceFlags: null, traceState: null, callSpan: null };
    expect(packed?.unpack({ ...shared, trace }).resultExpired).toBe(true);
  });
});

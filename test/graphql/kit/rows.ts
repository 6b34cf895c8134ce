/** Makes rows in the form in which core answers them: connections, commands, waits and messages. */
import type { Connection } from '../../../src/core/connections/connection.ts';
import type { PendingRpc } from '../../../src/core/core.ts';
import type { Command } from '../../../src/core/commands/command.ts';
import type { Message } from '../../../src/core/history/message.ts';
import { trustJson } from '../../../src/core/json.ts';

export const T0 = Date.UTC(2026, 0, 1);

export function connection(userId: string, clientId: string, more: Partial<Connection> = {}): Connection {
  return {
    userId,
    clientId,
    instanceId: `${clientId}-i1`,
    nodeId: 'n1',
    epoch: 1,
    clientType: 'browser',
    host: true,
    metadata: trustJson('{"status":"CONNECTED","deep":{"USER_OWNED":[1,null]}}'),
    actions: [
      {
        name: 'tab.open',
        summary: 'Opens a tab',
        description: null,
        version: null,
        checksArguments: true,
        schema: trustJson('{"type":"object","enum":["STALE"]}'),
        metadata: null,
      },
    ],
    connectedAt: T0 - 60_000,
    lastSeenAt: T0,
    disconnectedAt: null,
    disconnectCause: null,
    closeCode: null,
    replacedInstanceId: null,
    replacedAt: null,
    predecessors: [],
    ...more,
  };
}

export function command(more: Partial<Command> = {}): Command {
  return {
    userId: 'ann',
    clientId: 'c1',
    commandId: 'k1',
    version: 1,
    action: 'tab.open',
    scopeId: 'ann',
    digest: 'd',
    stage: 'dispatched',
    lastProvenStage: 'dispatched',
    outcome: null,
    execution: 'may_have_run',
    error: null,
    reason: null,
    attempts: 1,
    namedInstanceId: null,
    clientType: 'browser',
    expectedInstanceId: 'c1-i1',
    boundInstanceId: 'c1-i1',
    nodeId: 'n1',
    recoveredFromNodeId: null,
    caller: { kind: 'user', name: 'ann' },
    traceId: null,
    parentSpanId: null,
    traceFlags: null,
    traceState: null,
    callSpan: null,
    admittedAt: T0,
    queuedAt: T0,
    dispatchedAt: T0 + 5,
    acknowledgedAt: null,
    terminalAt: null,
    cancelRequestedAt: null,
    connectDeadline: T0 + 10_000,
    deadline: T0 + 30_000,
    lateResults: 0,
    firstLate: null,
    resultExpired: false,
    sightings: [{ messageId: 'k1:result:c1-i1', firstSeenAt: T0 + 7, lastSeenAt: T0 + 9, count: 2 }],
    ...more,
  };
}

export function pendingRpc(of: Command = command(), more: Partial<PendingRpc> = {}): PendingRpc {
  const { userId, clientId, commandId, action } = of;
  return {
    waiter: {
      userId,
      clientId,
      commandId,
      action,
      rpcId: `${commandId}-r1`,
      caller: { kind: 'user', name: 'alice' },
      callerNodeId: 'n2',
      waitFor: 'completed',
      createdAt: T0,
      timesOutAt: T0 + 30_000,
    },
    command: of,
    ageMs: 1234,
    instanceMismatch: null,
    ...more,
  };
}

export function message(seq: number, more: Partial<Message> = {}): Message {
  return {
    id: `m${seq}`,
    userId: 'ann',
    suffix: 'clients/c1',
    kind: 'result',
    clientId: 'c1',
    instanceId: 'c1-i1',
    commandId: 'k1',
    traceId: 'trace',
    parentSpanId: null,
    payload: trustJson('{"secret":"s3cret"}'),
    spill: null,
    error: null,
    seq,
    at: T0 + seq,
    payloadBytes: 19,
    ...more,
  };
}

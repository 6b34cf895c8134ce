/** Tests invoking, awaiting and cancelling over GraphQL. */
import { describe, expect, it } from 'vitest';
import type { Invocation } from '../../src/core/core.ts';
import { fail } from '../../src/core/errors.ts';
import { trustJson } from '../../src/core/json.ts';
import { restSchema } from '../../src/graphql/schema/schema.ts';
import { fakeCore } from './kit/fake-core.ts';
import { command, connection, message, pendingRpc } from './kit/rows.ts';
import { admin, ann, ask, codeOf, dataOf } from './kit/run.ts';

const ENDED = command({ stage: 'terminal', outcome: 'completed', execution: 'reported_by_client' });
const outcome: Invocation = { kind: 'outcome', command: ENDED, rpcId: 'r1', result: trustJson('{"opened":7}') };
const pending: Invocation = { kind: 'pending', command: command(), rpcId: 'r1', result: null };
const refused: Invocation = {
  kind: 'refused',
  code: 'capacity_exceeded',
  message: 'Full.',
  by: 'capacity',
  retryAfterMs: 250,
  commandId: 'mine',
};

const FLAT = `__typename
  ... on Invocation { commandId rpcId outcome stage execution result error { code } command { action } }
  ... on Refusal { code message by retryAfterMs givenCommandId }`;
const INVOKE = `mutation ($input: InvokeActionInput!) { invokeAction(input: $input) { ${FLAT} } }`;
const input = { userId: 'ann', clientId: 'c1', action: 'tab.open' };

describe('invokeAction', () => {
  it('passes the arguments to core, with the documented defaults', async () => {
    const requests: unknown[] = [];
    const { core } = fakeCore({ invoke: (_who, request) => (requests.push(request), outcome) });
    await dataOf(INVOKE, { core, variables: { input } });
    await dataOf(INVOKE, {
      core,
      variables: { input: { ...input, params: { b: [1, null], a: 'ü' }, waitFor: 'ACKNOWLEDGED', commandId: 'k9' } },
    });
    expect(requests).toEqual([
      { ...input, params: null, waitFor: 'completed', connectWithinMs: 0, respondWithinMs: 30_000, signal: undefined },
      expect.objectContaining({ params: '{"b":[1,null],"a":"ü"}', waitFor: 'acknowledged', commandId: 'k9' }),
    ]);
  });

  it('keeps variables inside a JSON literal', async () => {
    const requests: unknown[] = [];
    const { core } = fakeCore({ invoke: (_who, request) => (requests.push(request), outcome) });
    const document = `mutation ($url: String) {
      invokeAction(input: { userId: "ann", clientId: "c1", action: "tab.open", params: { url: $url, n: 2 } }) { __typename }
    }`;
    await dataOf(document, { core, variables: { url: 'x' } });
    expect(requests).toEqual([expect.objectContaining({ params: '{"url":"x","n":2}' })]);
  });

  it('answers an end, a reached wait and a refusal, each with its own type', async () => {
    const answers = async (invocation: Invocation) =>
      dataOf(INVOKE, { core: fakeCore({ invoke: () => invocation }).core, variables: { input }, requester: ann });
    expect(await answers(outcome)).toEqual({
      invokeAction: {
        __typename: 'InvokeActionOutcome',
        commandId: 'k1',
        rpcId: 'r1',
        outcome: 'COMPLETED',
        stage: 'TERMINAL',
        execution: 'REPORTED_BY_CLIENT',
        result: { opened: 7 },
        error: null,
        command: { action: 'tab.open' },
      },
    });
    expect(await answers(pending)).toMatchObject({
      invokeAction: {
        __typename: 'InvokeActionPending',
        outcome: null,
        stage: 'DISPATCHED',
        execution: 'MAY_HAVE_RUN',
      },
    });
    expect(await answers(refused)).toEqual({
      invokeAction: {
        __typename: 'Refusal',
        code: 'capacity_exceeded',
        message: 'Full.',
        by: 'CAPACITY',
        retryAfterMs: 250,
        givenCommandId: 'mine',
      },
    });
  });

  it('shows its result to its caller without an audit line, also to an administrator', async () => {
    const audit: Record<string, unknown>[] = [];
    await dataOf(INVOKE, {
      core: fakeCore({ invoke: () => outcome }).core,
      variables: { input },
      audit,
      requester: admin,
    });
    expect(audit).toEqual([]);
  });

  it('refuses what core throws in the same form, with the layer and every invalid input', async () => {
    const errors = [{ parameter: 'client_id', detail: 'not an id' }];
    const refusals = [
      ['forbidden', 'TOKEN'],
      ['not_found', 'ADDRESS'],
      ['invalid_argument', 'ARGUMENTS'],
      ['reserved_parameter', 'ARGUMENTS'],
      ['share_exceeded', 'CAPACITY'],
      ['ambiguous', 'RELAY'],
    ] as const;
    const query = INVOKE.replace('givenCommandId', 'share errors { parameter detail } givenCommandId');
    for (const [code, by] of refusals) {
      const { core } = fakeCore({ invoke: () => fail(code, 'No.', { errors, share: 'waits', retryAfterMs: 5 }) });
      expect(await dataOf(query, { core, variables: { input } })).toEqual({
        invokeAction: {
          ...{ __typename: 'Refusal', code, by, message: 'No.' },
          ...{ share: 'waits', retryAfterMs: 5, errors, givenCommandId: null },
        },
      });
    }
  });

  it('fails with an error, and no refusal, without a requester or a proof', async () => {
    for (const code of ['unauthenticated', 'internal', 'store_unavailable'] as const) {
      const { core } = fakeCore({ invoke: () => fail(code, 'No.') });
      expect(await codeOf(INVOKE, { core, variables: { input } })).toBe(code);
    }
    const { core } = fakeCore({ invoke: () => outcome });
    expect(await codeOf(INVOKE, { core, variables: { input }, requester: null })).toBe('unauthenticated');
  });

  it('refuses JSON that is nested too deeply before it calls core', async () => {
    const requests: unknown[] = [];
    const { core } = fakeCore({ invoke: (_who, request) => (requests.push(request), outcome) });
    const nested = (depth: number): unknown =>
      Array.from({ length: depth - 1 }).reduce<unknown>((inner) => [inner], {});
    const send = (depth: number) => ask(INVOKE, { core, variables: { input: { ...input, params: nested(depth) } } });
    expect((await send(200)).errors).toBeUndefined();
    for (const depth of [201, 100_000])
      expect((await send(depth)).errors?.[0]?.message).toMatch(/nested at most 200 levels deep/);
    expect(requests).toHaveLength(1);
  });
});

describe('awaitCommand', () => {
  const AWAIT = `mutation ($id: ID!) { awaitCommand(userId: "ann", clientId: "c1", commandId: $id, withinMs: 0) { ${FLAT} } }`;

  it("is audited when it shows an administrator a command's result", async () => {
    const audit: Record<string, unknown>[] = [];
    const { core } = fakeCore({ invoke: () => outcome });
    await dataOf(AWAIT, { core, variables: { id: 'k1' }, audit, requester: admin });
    expect(audit).toEqual([expect.objectContaining({ audit: 'payload', commandId: 'k1' })]);
  });

  it('of an absent command is refused with not_found', async () => {
    expect(await dataOf(AWAIT, { core: fakeCore({}).core, variables: { id: 'absent' } })).toMatchObject({
      awaitCommand: { __typename: 'Refusal', code: 'not_found', by: 'ADDRESS' },
    });
  });

  it('answers a thrown refusal as a typed one, and passes errors on', async () => {
    const full = fakeCore({ invoke: () => fail('capacity_exceeded', 'Too many wait.', { retryAfterMs: 1000 }) });
    expect(await dataOf(AWAIT, { core: full.core, variables: { id: 'k1' }, schema: restSchema })).toMatchObject({
      awaitCommand: { code: 'capacity_exceeded', by: 'capacity', retryAfterMs: 1000, givenCommandId: null },
    });
    const broken = fakeCore({ invoke: () => fail('store_unavailable', 'No store.') });
    expect(await codeOf(AWAIT, { core: broken.core, variables: { id: 'k1' } })).toBe('store_unavailable');
  });
});

describe('cancelCommand', () => {
  const CANCEL = `mutation ($id: ID!) {
    cancelCommand(input: { userId: "ann", clientId: "c1", commandId: $id, reason: "no need" }) {
      __typename ... on CancelReceipt { state commandId outcome command { commandId outcome } } ... on Refusal { code by }
    }
  }`;

  it('answers a receipt', async () => {
    const { core } = fakeCore({
      cancel: () => ({ state: 'too_late', commandId: 'k1', outcome: 'completed', command: ENDED }),
    });
    expect(await dataOf(CANCEL, { core, variables: { id: 'k1' } })).toEqual({
      cancelCommand: {
        __typename: 'CancelReceipt',
        state: 'TOO_LATE',
        commandId: 'k1',
        outcome: 'COMPLETED',
        command: { commandId: 'k1', outcome: 'COMPLETED' },
      },
    });
  });

  it('answers a refusal by type, an absent command too', async () => {
    const { core } = fakeCore({ cancel: () => fail('policy_denied', 'Rule 3.') });
    expect(await dataOf(CANCEL, { core, variables: { id: 'k1' } })).toEqual({
      cancelCommand: { __typename: 'Refusal', code: 'policy_denied', by: 'POLICY' },
    });
    expect(await dataOf(CANCEL, { core, variables: { id: 'absent' } })).toEqual({
      cancelCommand: { __typename: 'Refusal', code: 'not_found', by: 'ADDRESS' },
    });
  });
});

describe('the case file', () => {
  it('combines delivery, waiters, history, sightings and the connection, each with its own time', async () => {
    const { core, calls } = fakeCore({
      connections: [connection('ann', 'c1')],
      commands: [command()],
      waits: [pendingRpc()],
      messages: [message(1)],
    });
    const document = `{
      command(userId: "ann", clientId: "c1", commandId: "k1") {
        delivery { stage outcome attempts dispatchedAt acknowledgedAt connectDeadline deadline boundInstanceId lateResults firstLateAt }
        waiters { rpcId ageMs timesOutAt connectDeadline waitFor nodeId callerNodeId instanceMismatch { observedInstanceId } }
        history { nodes { id: messageId at payloadState } }
        sightings { messageId count firstSeenAt lastSeenAt }
        connection { instanceId status heartbeat lastSeenAt recentlyReplaced inFlight queued }
        outcome error { code }
      }
    }`;
    expect(await dataOf(document, { core, requester: ann })).toEqual({
      command: {
        delivery: {
          stage: 'DISPATCHED',
          outcome: null,
          attempts: 1,
          dispatchedAt: '2026-01-01T00:00:00.005Z',
          acknowledgedAt: null,
          connectDeadline: '2026-01-01T00:00:10.000Z',
          deadline: '2026-01-01T00:00:30.000Z',
          boundInstanceId: 'c1-i1',
          lateResults: 0,
          firstLateAt: null,
        },
        waiters: [
          {
            rpcId: 'k1-r1',
            ageMs: 1234,
            timesOutAt: '2026-01-01T00:00:30.000Z',
            connectDeadline: '2026-01-01T00:00:10.000Z',
            waitFor: 'COMPLETED',
            nodeId: 'n1',
            callerNodeId: 'n2',
            instanceMismatch: null,
          },
        ],
        history: { nodes: [{ id: 'm1', at: '2026-01-01T00:00:00.001Z', payloadState: 'REDACTED' }] },
        sightings: [
          {
            messageId: 'k1:result:c1-i1',
            count: 2,
            firstSeenAt: '2026-01-01T00:00:00.007Z',
            lastSeenAt: '2026-01-01T00:00:00.009Z',
          },
        ],
        connection: {
          instanceId: 'c1-i1',
          status: 'CONNECTED',
          heartbeat: 'OK',
          lastSeenAt: '2026-01-01T00:00:00.000Z',
          recentlyReplaced: false,
          inFlight: 2,
          queued: 3,
        },
        outcome: null,
        error: null,
      },
    });
    expect(calls.filter((call) => call.startsWith('rpc.') || call.startsWith('connections.')).sort()).toEqual([
      'connections.many',
      'rpc.ofCommands',
    ]);
  });

  it("of an absent command and of another user's is null", async () => {
    const { core } = fakeCore({ commands: [command()] });
    const of = (userId: string, commandId: string): string =>
      `{ command(userId: "${userId}", clientId: "c1", commandId: "${commandId}") { action } }`;
    expect(await dataOf(of('ann', 'none'), { core, requester: ann })).toEqual({ command: null });
    expect(await dataOf(of('bob', 'k1'), { core, requester: ann })).toEqual({ command: null });
  });
});

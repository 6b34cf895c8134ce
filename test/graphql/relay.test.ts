/** Tests GraphQL over a real core: calls, histories, listings and subscriptions. */
import { describe, expect, it } from 'vitest';
import { RawJson, toJson, trustJson } from '../../src/core/json.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { settle } from '../kit/clock.ts';
import { advertisement, connect, user } from '../kit/core.ts';
import { openCore } from '../kit/topology-core.ts';
import { ask, codeOf, dataOf, listen } from './kit/run.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const INVOKE = `mutation ($id: ID!) {
  invokeAction(input: { userId: "alice", clientId: "tab", action: "open", params: { n: 1 }, commandId: $id }) {
    __typename ... on Invocation { outcome result rpcId } ... on Refusal { code by givenCommandId }
  }
}`;

describe('over real rooms', () => {
  it('a command runs, and its case file and history show it', async () => {
    await using relay = await openCore();
    const client = await connect(relay.core, alice);
    const call = dataOf(INVOKE, { core: relay.core, requester: alice, variables: { id: 'k1' } });
    await settle();
    expect(client.sent[0]?.params).toBe('{"n":1}');
    await client.result(client.last, { opened: 7 });
    expect(await call).toMatchObject({ invokeAction: { outcome: 'COMPLETED', result: { opened: 7 } } });
    const file = `{
      command(userId: "alice", clientId: "tab", commandId: "k1") {
        outcome delivery { attempts execution } waiters { rpcId } sightings { count } result(reveal: true)
        connection { inFlight queued pendingRpcs { nodes { rpcId } } }
        history { nodes { kind stream payloadState } }
      }
    }`;
    expect(await dataOf(file, { core: relay.core, requester: alice })).toEqual({
      command: {
        outcome: 'COMPLETED',
        delivery: { attempts: 1, execution: 'REPORTED_BY_CLIENT' },
        waiters: [],
        sightings: [{ count: 1 }],
        result: { opened: 7 },
        connection: { inFlight: 0, queued: 0, pendingRpcs: { nodes: [] } },
        history: {
          nodes: ['COMMAND', 'RESULT'].map((kind) => ({
            kind,
            stream: 'alice/clients/tab',
            payloadState: 'REDACTED',
          })),
        },
      },
    });
  });

  it('a refusal is typed, and leaves no case file', async () => {
    await using relay = await openCore();
    expect(await dataOf(INVOKE, { core: relay.core, requester: alice, variables: { id: 'k1' } })).toEqual({
      invokeAction: { __typename: 'Refusal', code: 'not_connected', by: 'TARGET', givenCommandId: 'k1' },
    });
    const file = '{ command(userId: "alice", clientId: "tab", commandId: "k1") { action } }';
    expect(await dataOf(file, { core: relay.core, requester: alice })).toEqual({ command: null });
  });

  it('a caller that hangs up ends its wait, never the command', async () => {
    await using relay = await openCore();
    const client = await connect(relay.core, alice);
    const gone = new AbortController();
    const call = ask(INVOKE, { core: relay.core, requester: alice, variables: { id: 'k1' }, signal: gone.signal });
    await settle();
    const count = '{ pendingRpcCount { count } pendingRpcCountByNode { items { nodeId count } } }';
    expect(await dataOf(count, { core: relay.core, requester: alice })).toEqual({
      pendingRpcCount: { count: 1 },
      pendingRpcCountByNode: { items: [{ nodeId: 'n1', count: 1 }] },
    });
    gone.abort();
    await call;
    expect(await dataOf('{ pendingRpcCount { count } }', { core: relay.core, requester: alice })).toEqual({
      pendingRpcCount: { count: 0 },
    });
    await client.result(client.last);
    const file = '{ command(userId: "alice", clientId: "tab", commandId: "k1") { outcome } }';
    expect(await dataOf(file, { core: relay.core, requester: alice })).toEqual({ command: { outcome: 'COMPLETED' } });
  });

  it('params that are not an object are refused', async () => {
    await using relay = await openCore();
    const document = `mutation ($params: JSON) {
      invokeAction(input: { userId: "alice", clientId: "tab", action: "open", params: $params }) { ... on Refusal { code errors { parameter } } }
    }`;
    for (const params of [[], 'text', 1, true])
      expect(await dataOf(document, { core: relay.core, requester: alice, variables: { params } })).toEqual({
        invokeAction: { code: 'invalid_argument', errors: [{ parameter: 'params' }] },
      });
  });
});

describe('every nested listing over the real rooms', () => {
  const NESTED = {
    'user.connections': 'user(userId: "alice") { page: connections(first: 2, after: $after) { ...P } }',
    'user.streams': 'user(userId: "alice") { page: streams(first: 2, after: $after) { ...P } }',
    'user.pendingRpcs': 'user(userId: "alice") { page: pendingRpcs(first: 2, after: $after) { ...P } }',
    'connection.pendingRpcs':
      'user: connection(userId: "alice", clientId: "tab-0") { page: pendingRpcs(first: 2, after: $after) { ...P } }',
  };
  const fragments = {
    ConnectionSnapshot: 'id: clientId',
    Stream: 'id: suffix',
    PendingRpc: 'id: commandId',
  };
  const typeOf = { connections: 'ConnectionSnapshot', streams: 'Stream', pendingRpcs: 'PendingRpc' } as const;

  it.each(Object.entries(NESTED))('%s is read to its end from the batch, each row once', async (name, field) => {
    await using relay = await openCore();
    const clients = ['tab-0', 'tab-1', 'tab-2', 'tab-3', 'tab-4'];
    for (const clientId of clients) await connect(relay.core, alice, { clientId });
    for (const clientId of ['tab-0', ...clients, 'tab-0', 'tab-0', 'tab-0']) {
      unawaited(relay.core.rpc.invoke(alice, { userId: 'alice', clientId, action: 'open', params: toJson({}) }));
      await relay.clock.advance(1);
    }
    const type = typeOf[name.slice(name.indexOf('.') + 1) as keyof typeof typeOf];
    const document = `query ($after: String) { ${field} }
      fragment P on ${type}Connection { nodes { ${fragments[type]} } nextCursor completeness { complete } }`;
    const seen: string[] = [];
    let after: string | null = null;
    for (let turn = 0; turn < 10; turn++) {
      const answer = (await dataOf(document, { core: relay.core, requester: alice, variables: { after } })) as {
        user: { page: { nodes: { id: string }[]; nextCursor: string | null; completeness: unknown } };
      };
      expect(answer.user.page.completeness).toEqual({ complete: true });
      seen.push(...answer.user.page.nodes.map(({ id }) => id));
      if ((after = answer.user.page.nextCursor) === null) break;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toHaveLength(name === 'user.pendingRpcs' ? 9 : 5);
  });
});

describe('subscriptions over the real rooms', () => {
  it('connectionEvents sends a user the events of its own clients, with the cause', async () => {
    await using relay = await openCore();
    const document =
      'subscription { connectionEvents { change cause missed connection { clientId status actionNames } } }';
    const events = await listen(document, { core: relay.core, requester: alice });
    await connect(relay.core, user('bob'));
    const client = await connect(relay.core, alice);
    await client.session.advertise([advertisement('close')]);
    await client.session.closed('client_closed');
    const next = async (): Promise<unknown> => (await events.next()).value?.data?.connectionEvents;
    const connection = (status: string, ...actionNames: string[]) => ({ clientId: 'tab', status, actionNames });
    const text = { cause: null, missed: 0 };
    expect(await next()).toEqual({ ...text, change: 'CONNECTED', connection: connection('CONNECTED', 'open') });
    expect(await next()).toEqual({ ...text, change: 'ACTIONS_CHANGED', connection: connection('CONNECTED', 'close') });
    expect(await next()).toEqual({
      change: 'DISCONNECTED',
      cause: 'CLIENT_CLOSED',
      missed: 0,
      connection: connection('DISCONNECTED', 'close'),
    });
    await events.return?.();
  });

  it('connectionEvents of another user is refused before any event', async () => {
    await using relay = await openCore();
    const document = 'subscription { connectionEvents(userId: "bob") { change } }';
    await expect(listen(document, { core: relay.core, requester: alice })).rejects.toMatchObject({
      originalError: { code: 'not_found' },
    });
    await expect(listen(document, { core: relay.core, requester: null })).rejects.toMatchObject({
      originalError: { code: 'unauthenticated' },
    });
  });

  it('pendingRpcAlerts reports when the oldest wait crosses the bound, and when none exceeds it', async () => {
    await using relay = await openCore();
    const client = await connect(relay.core, alice);
    const document =
      'subscription { pendingRpcAlerts(olderThanMs: 5000) { over count oldestAgeMs missed oldest { commandId } } }';
    const events = await listen(document, { core: relay.core, requester: alice });
    const next = async (): Promise<unknown> => (await events.next()).value?.data?.pendingRpcAlerts;
    expect(await next()).toMatchObject({ over: false, count: 0, oldest: null });
    const call = dataOf(INVOKE, { core: relay.core, requester: alice, variables: { id: 'k1' } });
    await relay.clock.advance(7_000);
    expect(await next()).toMatchObject({ over: true, count: 1, oldest: { commandId: 'k1' }, missed: 0 });
    await client.result(client.last);
    await call;
    await relay.clock.advance(1_000);
    expect(await next()).toMatchObject({ over: false, count: 0, oldestAgeMs: 0, oldest: null });
    await events.return?.();
  });

  it('pendingRpcAlerts counts a wait whose age is exactly the bound, as minAgeMs does', async () => {
    await using relay = await openCore();
    await connect(relay.core, alice);
    const document = 'subscription { pendingRpcAlerts(olderThanMs: 5000) { over count oldestAgeMs } }';
    const events = await listen(document, { core: relay.core, requester: alice });
    await events.next();
    const call = dataOf(INVOKE, { core: relay.core, requester: alice, variables: { id: 'k1' } });
    await relay.clock.advance(5_000);
    const { value } = await events.next();
    expect(value?.data?.pendingRpcAlerts).toEqual({ over: true, count: 1, oldestAgeMs: 5_000 });
    await events.return?.();
    await relay.clock.advance(60_000);
    await call;
  });

  it.each([999, 600_001])('pendingRpcAlerts refuses the bound %s, and its argument declares the range', async (ms) => {
    await using relay = await openCore();
    const document = `subscription { pendingRpcAlerts(olderThanMs: ${ms}) { over } }`;
    await expect(listen(document, { core: relay.core, requester: alice })).rejects.toMatchObject({
      originalError: { code: 'invalid_argument' },
    });
    const argument = schema
      .getSubscriptionType()
      ?.getFields()
      ['pendingRpcAlerts']?.args.find(({ name }) => name === 'olderThanMs');
    expect(argument?.extensions).toMatchObject({ minimum: 1_000, maximum: 600_000 });
  });

  it('commandUpdates begins with the current state and ends after the terminal one', async () => {
    await using relay = await openCore();
    const client = await connect(relay.core, alice);
    const call = dataOf(INVOKE, { core: relay.core, requester: alice, variables: { id: 'k1' } });
    // With two relays, the command is still queued until the client's relay has read its mailbox.
    await expect.poll(() => client.sent.length).toBe(1);
    await settle();
    const document =
      'subscription { commandUpdates(userId: "alice", clientId: "tab", commandId: "k1") { stage outcome progress } }';
    const events = await listen(document, { core: relay.core, requester: alice });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const { data } of events) seen.push(data?.['commandUpdates']);
    })();
    await settle();
    await client.session.ack('k1');
    await settle();
    await client.session.progress('k1', toJson({ percent: 40 }));
    await settle();
    await client.result(client.last);
    await Promise.all([call, reading]);
    expect(seen).toEqual([
      { stage: 'DISPATCHED', outcome: null, progress: null },
      { stage: 'ACKNOWLEDGED', outcome: null, progress: null },
      { stage: 'ACKNOWLEDGED', outcome: null, progress: new RawJson(trustJson('{"percent":40}')) },
      { stage: 'TERMINAL', outcome: 'COMPLETED', progress: null },
    ]);
  });
});

describe('viewer', () => {
  const document = '{ viewer { kind userId scopes nodeId mode expiresAt } }';

  it('names the requester and the answering node', async () => {
    await using relay = await openCore();
    const here = { nodeId: relay.core.nodeId, mode: relay.core.mode.toUpperCase(), expiresAt: null };
    expect(await dataOf(document, { core: relay.core, requester: user('alice', 'invoke') })).toEqual({
      viewer: { kind: 'USER', userId: 'alice', scopes: ['INVOKE'], ...here },
    });
    expect(await dataOf(document, { core: relay.core })).toEqual({
      viewer: { kind: 'ADMIN', userId: null, scopes: [], ...here },
    });
  });

  it('requires a token, and for a user the scope invoke', async () => {
    await using relay = await openCore();
    expect(await codeOf(document, { core: relay.core, requester: null })).toBe('unauthenticated');
    expect(await codeOf(document, { core: relay.core, requester: user('alice', 'connect') })).toBe('forbidden');
  });
});

/** Tests the operator's view of delivery over GraphQL, without payloads. */
import { getNamedType, isInterfaceType, isObjectType, isUnionType, type GraphQLNamedType } from 'graphql';
import { describe, expect, it, vi } from 'vitest';
import { DocumentReading } from '../../src/core/document-reading.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { meanwhile, settle } from '../kit/clock.ts';
import { PROCESS, connect, user } from '../kit/core.ts';
import { openCore, type OpenedCore } from '../kit/topology-core.ts';
import { admin, ann, ask, codeOf, dataOf } from './kit/run.ts';

const alice = user('alice');
const invoke = ({ core }: OpenedCore, commandId: string) =>
  core.rpc.invoke(alice, {
    userId: 'alice',
    clientId: 'tab',
    action: 'open',
    params: null,
    commandId,
  });

/** Returns every type that a query can reach from this one, with the path to it. */
function reach(from: string): ReadonlyMap<string, string> {
  const ways = new Map<string, string>();
  const visit = (type: GraphQLNamedType, way: string): void => {
    if (ways.has(type.name)) return;
    ways.set(type.name, way);
    if (isUnionType(type) || isInterfaceType(type))
      for (const one of schema.getPossibleTypes(type)) visit(one, `${way}|${one.name}`);
    if (!isObjectType(type) && !isInterfaceType(type)) return;
    for (const field of Object.values(type.getFields())) visit(getNamedType(field.type), `${way}.${field.name}`);
  };
  const start = schema.getType(from);
  if (!start) throw new Error(`no type ${from}`);
  visit(start, from);
  return ways;
}

describe('payloads', () => {
  it.each(['Delivery', 'PendingRpc', 'DispatcherNode'])('are not reachable from %s by any path', (from) => {
    const ways = reach(from);
    expect(ways.get('JSON')).toBeUndefined();
    for (const holder of ['Command', 'Message', 'Invocation', 'ConnectionSnapshot'])
      expect(ways.get(holder)).toBeUndefined();
    const fields = [...ways.keys()]
      .map((name) => schema.getType(name))
      .filter((type) => isObjectType(type))
      .flatMap((type) => Object.keys(type.getFields()));
    expect(fields.length).toBeGreaterThan(10);
    expect(fields.filter((name) => /payload|params|result$|progress|metadata/i.test(name))).toEqual([]);
  });

  it('the search finds the existing paths', () => {
    expect(reach('Command').get('JSON')).toMatch(/^Command\./);
    expect([...reach('Delivery').keys()]).toEqual(
      expect.arrayContaining(['CommandRef', 'Counter', 'DeliveryRecord', 'CapacityScope', 'ObservedSource']),
    );
  });
});

it('all listings of a document read for one document, so that they end together and share a bound', async () => {
  await using opened = await openCore();
  await invoke(opened, 'c1');
  const { inspector, history } = opened.backend;
  const lists = vi.spyOn(inspector, 'list');
  const ofCommand = vi.spyOn(history, 'ofCommand');
  await dataOf(
    `{ a: commands(filter: { action: "x" }) { nextCursor } b: commands(order: NEWEST) { nextCursor }
       findCommands(idOrTrace: "c1") { nextCursor }
       delivery { commands { nextCursor } failures(by: [ACTION]) { count } }
       commandHistory(userId: "alice", commandId: "c1") { nextCursor } }`,
    { core: opened.core, requester: admin },
  );
  const readings = [...lists.mock.calls.map(([, page]) => page), ...ofCommand.mock.calls.map(([, , page]) => page)];
  expect(readings.length).toBeGreaterThanOrEqual(6);
  expect(new Set(readings.map(({ reading }) => reading)).size).toBe(1);
  expect(readings[0]?.reading).toBeInstanceOf(DocumentReading);
});

describe('the limits of proof are stated by', () => {
  const described = (type: string, field?: string): string => {
    const found = schema.getType(type);
    if (!field) return found?.description ?? '';
    return (isObjectType(found) && found.getFields()[field]?.description) || '';
  };
  it.each([
    ['Delivery', undefined, /no status here ever means that an effect outside a client is complete/],
    ['DeliverySummary', undefined, /of a sample, not an exact global extreme/],
    ['DeliverySummary', 'sampledOldestQueuedAgeMs', /A sample, not an exact global maximum/],
    ['CapacityScope', undefined, /of admission, not of execution/],
    ['DispatcherNode', undefined, /never that a client got or ran anything/],
    ['DisconnectReceipt', undefined, /ends a link, not a command/],
  ])('%s %s', (type, field, words) => {
    expect(described(type, field)).toMatch(words);
  });
});

const everything = `{
  delivery {
    summary { trackedCommands dueCommands sampledOldestDeadline sampledOldestQueuedAgeMs sampleSize
      legacyCommandStreamDepth pendingCommandDepth mode }
    nodes { nodes { nodeId mailboxListenerAlive reconciliationAlive activeDrainers connectionWaiters links
      unfinishedCommands updatedAt stale draining version startedAt memoryBytes eventLoopDelayMs } completeness { complete sources { source } } }
    tenants { nodes { scopeId reservedCommands limit oldestDeadline holders { userId clientId commandId deadline } } }
    status(userId: "alice", clientId: "tab", commandId: "c1") { stage outcome attempts execution nodeId }
    commands(filter: { userId: "alice", stage: DISPATCHED }) { nodes { commandId } nextCursor }
  }
}`;

describe('delivery', () => {
  it('is shown completely in one query', async () => {
    await using relay = await openCore();
    await connect(relay.core, alice);
    void invoke(relay, 'c1');
    await relay.clock.advance(2_000);
    const deadline = '2026-01-01T00:00:30.000Z';
    const node = {
      nodeId: 'n1',
      mailboxListenerAlive: true,
      reconciliationAlive: true,
      activeDrainers: 0,
      connectionWaiters: 0,
      links: 0,
      unfinishedCommands: 0,
      updatedAt: '2026-01-01T00:00:02.000Z',
      stale: false,
      draining: false,
      version: '1.2.3',
      startedAt: '2026-01-01T00:00:00.000Z',
      memoryBytes: PROCESS.memoryBytes,
      eventLoopDelayMs: PROCESS.loopDelayMs,
    };
    const linked = { links: 1, unfinishedCommands: 1 };
    const waited = { connectionWaiters: 1 };
    expect(await dataOf(everything, { core: relay.core })).toEqual({
      delivery: {
        summary: {
          trackedCommands: 1,
          dueCommands: 0,
          sampledOldestDeadline: deadline,
          sampledOldestQueuedAgeMs: null,
          sampleSize: 1,
          legacyCommandStreamDepth: null,
          pendingCommandDepth: null,
          mode: relay.core.mode.toUpperCase(),
        },
        nodes: {
          nodes:
            relay.core.nodeId === 'n1'
              ? [{ ...node, ...waited, ...linked }]
              : [
                  { ...node, ...linked },
                  { ...node, ...waited, nodeId: relay.core.nodeId },
                ],
          completeness: { complete: true, sources: [{ source: 'DELIVERY' }] },
        },
        tenants: {
          nodes: [
            {
              scopeId: 'alice',
              reservedCommands: 1,
              limit: 10_000,
              oldestDeadline: deadline,
              holders: [{ userId: 'alice', clientId: 'tab', commandId: 'c1', deadline }],
            },
          ],
        },
        status: { stage: 'DISPATCHED', outcome: null, attempts: 1, execution: 'MAY_HAVE_RUN', nodeId: 'n1' },
        commands: { nodes: [{ commandId: 'c1' }], nextCursor: null },
      },
    });
  });

  it('is for administrators only, which is checked before anything is read', async () => {
    await using relay = await openCore();
    for (const requester of [ann, null]) {
      const { data, errors } = await ask(everything, { core: relay.core, requester });
      expect(data ?? null).toBe(null);
      expect(errors).toHaveLength(1);
    }
    expect(await codeOf('{ delivery { __typename } }', { core: relay.core, requester: ann })).toBe('forbidden');
    expect(await codeOf('{ delivery { __typename } }', { core: relay.core, requester: null })).toBe('unauthenticated');
  });

  it('has no status for a command without a record, and refuses invalid ids', async () => {
    await using relay = await openCore();
    const status = (ids: string) => `{ delivery { status(${ids}) { stage } } }`;
    const none = await dataOf(status('userId: "alice", clientId: "tab", commandId: "c1"'), { core: relay.core });
    expect(none).toEqual({ delivery: { status: null } });
    const bad = { core: relay.core };
    expect(await codeOf(status('userId: "a/b", clientId: "tab", commandId: "c1"'), bad)).toBe('invalid_user');
    expect(await codeOf(status('userId: "alice", clientId: "", commandId: "c1"'), bad)).toBe('invalid_argument');
  });

  it('lists the counters of a node in order of name', async () => {
    await using relay = await openCore();
    await connect(relay.core, alice);
    await relay.clock.advance(2_000);
    const data = await dataOf('{ delivery { nodes { nodes { counters { name value } } } } }', { core: relay.core });
    const [{ counters = [] } = {}] = (data as any).delivery.nodes.nodes as {
      counters: { name: string; value: number }[];
    }[];
    const names = counters.map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    expect(counters).toEqual(
      expect.arrayContaining([
        { name: 'links_opened:client', value: 1 },
        { name: 'commands_ended:outcome_unknown', value: 0 },
        { name: 'commands_recovered', value: 0 },
        { name: 'commands_acknowledged', value: 0 },
      ]),
    );
  });
});

describe('operator actions', () => {
  const disconnect = `mutation ($reason: String) {
    disconnectClient(userId: "alice", clientId: "tab", reason: $reason) {
      __typename
      ... on DisconnectReceipt { state connection { status disconnectCause } }
      ... on Refusal { code by }
    }
  }`;
  const refusal = (code: string, by: string) => ({ __typename: 'Refusal', code, by });
  const drain = (nodeId: string) =>
    `mutation { drainNode(nodeId: "${nodeId}", withinMs: 0) { __typename ... on DispatcherNode { nodeId draining links } ... on Refusal { code by } } }`;

  it('disconnect a client: the receipt, the refusal of a link that is down, and not_found', async () => {
    await using relay = await openCore();
    expect(await dataOf(disconnect, { core: relay.core })).toEqual({
      disconnectClient: refusal('not_found', 'ADDRESS'),
    });
    const client = await connect(relay.core, alice);
    expect(await dataOf(disconnect, { core: relay.core, requester: alice })).toEqual({
      disconnectClient: refusal('forbidden', 'TOKEN'),
    });
    expect(client.closes).toEqual([]);
    const requested = { core: relay.core, variables: { reason: 'misbehaves' } };
    expect(await meanwhile(relay.clock, dataOf(disconnect, requested))).toEqual({
      disconnectClient: {
        __typename: 'DisconnectReceipt',
        state: 'CLOSED',
        connection: { status: 'DISCONNECTED', disconnectCause: 'OPERATOR' },
      },
    });
    expect(await dataOf(disconnect, { core: relay.core })).toEqual({
      disconnectClient: refusal('not_connected', 'TARGET'),
    });
  });

  it('drain a node: its remaining work, and not_found', async () => {
    await using relay = await openCore();
    expect(await dataOf(drain('n9'), { core: relay.core })).toEqual({ drainNode: refusal('not_found', 'ADDRESS') });
    expect(await dataOf(drain('n1'), { core: relay.core, requester: alice })).toEqual({
      drainNode: refusal('forbidden', 'TOKEN'),
    });
    expect(relay.core.draining).toBe(false);
    await connect(relay.core, alice);
    expect(await meanwhile(relay.clock, dataOf(drain('n1'), { core: relay.core, requester: admin }))).toMatchObject({
      drainNode: { nodeId: 'n1', draining: true },
    });
    await settle();
    await relay.clock.advance(2_000);
    expect(await dataOf('{ delivery { nodes { nodes { links draining } } } }', { core: relay.core })).toMatchObject({
      delivery: { nodes: { nodes: expect.arrayContaining([{ links: 0, draining: true }]) } },
    });
  });
});

/** Tests the interface Node: its ids, and looking rows up by them. */
import { readdirSync, readFileSync } from 'node:fs';
import { isInterfaceType, isObjectType, parse, visit } from 'graphql';
import { describe, expect, it } from 'vitest';
import { NODE_IDS } from '../../src/core/limits.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { nodeIdOf, readNodeId } from '../../src/graphql/schema/node-ids.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { fakeCore } from './kit/fake-core.ts';
import { countedWindow, executionContext } from './kit/contexts.ts';
import { command, connection, message, pendingRpc, T0 } from './kit/rows.ts';
import { codeOf, dataOf } from './kit/run.ts';

const TYPES = [
  'BrowserWindow',
  'CapacityScope',
  'Command',
  'ConnectionSnapshot',
  'DeliveryRecord',
  'DispatcherNode',
  'ExecutionContext',
  'Message',
  'PendingRpc',
  'Site',
  'SiteGrant',
  'SiteSession',
  'Stream',
  'User',
];

describe('the interface Node', () => {
  it('is implemented by every type of rows', () => {
    const type = schema.getType('Node');
    if (!isInterfaceType(type)) throw new Error('no interface Node');
    const implementing = schema.getPossibleTypes(type).map(({ name }) => name);
    expect(implementing.sort()).toEqual(TYPES);
    for (const one of schema.getPossibleTypes(type)) expect(String(one.getFields()['id']?.type)).toBe('ID!');
  });

  it('has the only fields called id, so that no cache keeps a row by a local id', () => {
    const types = Object.values(schema.getTypeMap()).filter(isObjectType);
    const withId = types.filter((type) => !type.name.startsWith('__') && 'id' in type.getFields());
    // Rows of the audit cannot be looked up one by one. Their numbers are unique in the deployment.
    expect(withId.map(({ name }) => name).sort()).toEqual(['AuditEvent', ...TYPES]);
  });
});

describe('REST', () => {
  it('never shows an opaque id: its documents select the local ids under the wire names', () => {
    const folder = new URL('../../src/rest/operations/', import.meta.url);
    const files = readdirSync(folder).filter((name) => name.endsWith('.graphql'));
    expect(files.length).toBeGreaterThan(6);
    const shown: string[] = [];
    for (const file of files) {
      visit(parse(readFileSync(new URL(file, folder), 'utf8')), {
        Field: ({ name }) => void (name.value === 'id' && shown.push(file)),
      });
    }
    expect(shown).toEqual([]);
  });
});

describe('ids', () => {
  const key = { userId: 'zoë', clientId: 'c/1' };

  it('are read back as the key that they were made of, whatever characters it contains', () => {
    const stream = { userId: 'zoë', suffix: 'sites/a/events' };
    expect(readNodeId('id', nodeIdOf('Stream', stream))).toEqual({ kind: 'Stream', key: stream });
    const row = { seq: 7, at: T0, ...stream };
    expect(readNodeId('id', nodeIdOf('Message', row)).key).toEqual({ ...stream, seq: '7', at: String(T0) });
  });

  it.each([
    ['nothing', ''],
    ['a local id', 'tab'],
    ['an unknown kind', Buffer.from('1?alice').toString('base64url')],
    ['an unknown version', Buffer.from('0ualice').toString('base64url')],
    ['a part too few', Buffer.from('1calice').toString('base64url')],
    ['a part that is no id', nodeIdOf('ConnectionSnapshot', key)],
    ['a user that is not canonical', nodeIdOf('User', { userId: 'Alice@Example.COM' })],
    ['a number with a sign', nodeIdOf('Message', { seq: -1, at: T0, userId: 'alice', suffix: 'notes' })],
    ['another text of the same bytes', `${nodeIdOf('User', { userId: 'alice' })}==`],
    ['bytes that are no text', Buffer.from([0x31, 0x75, 0xff]).toString('base64url')],
    ['a text that is too long', nodeIdOf('CapacityScope', { scopeId: 'x'.repeat(5000) })],
  ])('of another form are refused: %s', (_, id) => {
    expect(() => readNodeId('id', id)).toThrow(/id: expected an id/);
  });
});

const rows = ['ann', 'ben'].map((userId) => {
  const one = command({ userId, clientId: 'c1', commandId: 'k1' });
  return {
    connections: [connection(userId, 'c1')],
    streams: [{ userId, suffix: 'clients/c1', messageCount: 1, firstAt: T0, lastAt: T0 }],
    messages: [message(1, { userId, suffix: 'clients/c1' })],
    commands: [one],
    waits: [pendingRpc(one)],
    contexts: [executionContext(userId, 'x1', { windowId: 'w1' })],
    windows: [countedWindow(userId, 'w1')],
  };
});
const [ann, ben] = rows;
if (!ann || !ben) throw new Error('no rows');
const rowsOfEveryKind = () =>
  fakeCore({
    connections: [...ann.connections, ...ben.connections],
    streams: [...ann.streams, ...ben.streams],
    messages: [...ann.messages, ...ben.messages],
    // The fake core finds commands and waits by command id alone.
    commands: ann.commands,
    waits: ann.waits,
    contexts: [...ann.contexts, ...ben.contexts],
    windows: [...ann.windows, ...ben.windows],
  });

const idsOf = (userId: string): readonly string[] => {
  const client = { userId, clientId: 'c1' };
  const first = { ...client, commandId: 'k1' };
  const stream = { userId, suffix: 'clients/c1' };
  const rpcId = ann.waits[0]?.waiter.rpcId ?? '';
  return [
    nodeIdOf('User', { userId }),
    nodeIdOf('ConnectionSnapshot', client),
    nodeIdOf('Stream', stream),
    nodeIdOf('Message', { ...stream, seq: 1, at: ann.messages[0]?.at ?? 0 }),
    nodeIdOf('Command', first),
    nodeIdOf('DeliveryRecord', first),
    nodeIdOf('PendingRpc', { ...first, rpcId }),
    nodeIdOf('ExecutionContext', { ...client, contextId: 'x1' }),
    nodeIdOf('BrowserWindow', { ...client, windowId: 'w1' }),
  ];
};

const NODES = 'query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }';

describe('nodes(ids)', () => {
  it('answers each row with its type in the order of the ids, also when one is asked twice', async () => {
    const ids = idsOf('ann');
    const asked = [...ids, ...ids.toReversed()];
    const { nodes } = (await dataOf(NODES, { core: rowsOfEveryKind().core, variables: { ids: asked } })) as {
      nodes: { id: string; __typename: string }[];
    };
    expect(nodes.map(({ id }) => id)).toEqual(asked);
    expect(nodes.slice(0, ids.length).map(({ __typename }) => __typename)).toEqual([
      'User',
      'ConnectionSnapshot',
      'Stream',
      'Message',
      'Command',
      'DeliveryRecord',
      'PendingRpc',
      'ExecutionContext',
      'BrowserWindow',
    ]);
  });

  it('reads each kind once, however many rows and fields ask for it', async () => {
    const { core, calls } = rowsOfEveryKind();
    const variables = { ids: [...idsOf('ann'), ...idsOf('ben')], id: idsOf('ann')[1] };
    await dataOf(
      'query ($ids: [ID!]!, $id: ID!) { nodes(ids: $ids) { id } node(id: $id) { id } twin: node(id: $id) { id } }',
      { core, variables },
    );
    expect(calls.toSorted()).toEqual([
      'connections.many',
      'contexts.many',
      'contexts.manyWindows',
      'delivery.many',
      'history.manyMessages',
      'history.manyStreams',
      'rpc.ofCommands',
      'users.many',
    ]);
  });

  it('counts its rows in the cost, and takes a bounded number', async () => {
    const one = idsOf('ann')[0] ?? '';
    const many = (count: number) => ({ core: rowsOfEveryKind().core, variables: { ids: Array(count).fill(one) } });
    const plan = createPlans(schema).of(
      parse(
        'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on User { connections(first: 50) { nodes { clientId } } } } }',
      ),
    );
    const cost = (count: number) => plan?.bind({ ids: Array(count).fill(one) }).cost(null) ?? 0;
    expect(cost(1)).toBeGreaterThan(50);
    expect(cost(NODE_IDS) - 1).toBe(NODE_IDS * (cost(1) - 1));
    expect(await codeOf(NODES, many(NODE_IDS + 1))).toBe('invalid_argument');
    expect(await codeOf(NODES, many(0))).toBe('invalid_argument');
    await dataOf(NODES, many(NODE_IDS));
  });
});

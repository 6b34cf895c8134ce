/** Tests opaque ids on a whole relay: they distinguish rows of users who chose the same local ids. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInterfaceType } from 'graphql';
import { schema } from '../../src/graphql/schema/schema.ts';
import { furnish, idsOf, openSession } from './kit/planted.ts';
import { everythingOf } from './kit/selection.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

/** The ids of two users, whose clients, commands, windows, contexts and sites have the same ids. */
const ALICE = idsOf('alice', 'same');
const BOB = idsOf('bob', 'same');
const VIEWER = 'a viewer';

type Row = { readonly __typename: string; readonly id: string } & Readonly<Record<string, unknown>>;

let relay: TestRelay;
let sessionId: string;
beforeAll(async () => {
  relay = await startTestRelay();
  for (const ids of [ALICE, BOB]) await furnish(relay, ids, 'same');
  for (const ids of [ALICE, BOB]) {
    const opened = await openSession(relay, ids);
    if (ids === BOB) continue;
    sessionId = opened.session_id;
    relay.know(VIEWER, opened.token);
  }
});
afterAll(() => relay[Symbol.asyncDispose]());

const NODE_TYPES = new Set(
  [schema.getType('Node')].flatMap((type) =>
    isInterfaceType(type) ? schema.getPossibleTypes(type).map(({ name }) => name) : [],
  ),
);

function select(field: string, type: string): string {
  const of = schema.getType(type);
  if (!of) throw new Error(`no ${type}`);
  return `{ ${field} ${everythingOf(of)} }`;
}

const LISTS = [
  ['users(first: 2)', 'UserConnection'],
  ['connections(first: 2)', 'ConnectionSnapshotConnection'],
  ['contexts(first: 4)', 'ExecutionContextConnection'],
  ['browserWindows(first: 2)', 'BrowserWindowConnection'],
  ['pendingRpcs(first: 2)', 'PendingRpcConnection'],
  ['sites(first: 2)', 'SiteConnection'],
  ['delivery', 'Delivery'],
  ...[ALICE, BOB].flatMap(({ user, client, command, stream }) => [
    [`messages(stream: "${stream}", first: 20)`, 'MessageConnection'],
    [`command(userId: "${user}", clientId: "${client}", commandId: "${command}")`, 'Command'],
  ]),
] as [string, string][];

async function rowsOf(query: string, requester: string): Promise<readonly Row[]> {
  const { data, errors } = await relay.graphql(query, { requester });
  expect([query.slice(0, 60), errors]).toEqual([query.slice(0, 60), []]);
  const found: Row[] = [];
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('__typename' in value && NODE_TYPES.has(String(value.__typename))) found.push(value as Row);
    Object.values(value).forEach(look);
  };
  look(data);
  return found;
}

async function allRows(): Promise<readonly Row[]> {
  const found: Row[] = [];
  for (const [field, type] of LISTS) found.push(...(await rowsOf(select(field, type), 'admin')));
  return found;
}

/** Returns what a person would call a row: its type and its local ids. */
function nameOf(row: Row): string {
  const { __typename, userId, owner, clientId, commandId, rpcId, contextId, windowId, siteId, stream, key } = row;
  const { sessionId: session, grantId, nodeId, scopeId, messageId } = row;
  switch (__typename) {
    case 'ExecutionContext':
      return JSON.stringify([__typename, userId, clientId, contextId]);
    case 'SiteSession':
    case 'SiteGrant':
      return JSON.stringify([__typename, session, grantId, row.id]);
    case 'Message':
      return JSON.stringify([__typename, stream, messageId, row['kind'], row['at']]);
    case 'DispatcherNode':
      return JSON.stringify([__typename, nodeId]);
    case 'CapacityScope':
      return JSON.stringify([__typename, scopeId]);
    case 'ConnectionSnapshot':
      return JSON.stringify([__typename, userId, clientId]);
    default:
      return JSON.stringify([__typename, userId ?? owner, clientId, commandId, rpcId, windowId, siteId, key]);
  }
}

const NODES = 'query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }';

async function nodes(ids: readonly string[], requester: string) {
  const { data, errors } = await relay.graphql(NODES, { requester, variables: { ids } });
  return { rows: (data?.nodes ?? []) as (Pick<Row, 'id' | '__typename'> | null)[], errors };
}

describe('two users with the same local ids', () => {
  it('have different ids for different rows, over everything that nested queries show', async () => {
    const rows = await allRows();
    expect(new Set(rows.map(({ __typename }) => __typename))).toEqual(NODE_TYPES);
    const names = new Map<string, string>();
    for (const row of rows) {
      expect(names.get(row.id) ?? nameOf(row), row.id).toBe(nameOf(row));
      names.set(row.id, nameOf(row));
    }
    expect(new Set(names.values()).size).toBe(names.size);
    for (const type of ['User', 'ConnectionSnapshot', 'Stream', 'Site', 'BrowserWindow', 'PendingRpc'])
      expect([...names.values()].filter((name) => name.startsWith(`["${type}"`)).length, type).toBeGreaterThan(1);
  });

  it('find each row again by its id', async () => {
    const ids = [...new Set((await allRows()).map(({ id }) => id))];
    expect(ids.length).toBeGreaterThan(30);
    for (let from = 0; from < ids.length; from += 100) {
      const asked = ids.slice(from, from + 100);
      const { rows, errors } = await nodes(asked, 'admin');
      expect(errors).toEqual([]);
      expect(rows.map((row) => row?.id)).toEqual(asked);
    }
  });

  it('get null for rows of each other, and forbidden for kinds of administrators', async () => {
    const rows = (await allRows()).filter((row) => JSON.stringify(row).includes('alice'));
    const own = rows.filter(({ __typename }) => !['DispatcherNode', 'CapacityScope'].includes(__typename)).slice(0, 90);
    const ids = own.map(({ id }) => id);
    const foreign = await nodes(ids, 'bob');
    expect(foreign.errors).toEqual([]);
    expect(foreign.rows).toEqual(ids.map(() => null));
    expect((await nodes(ids, 'alice')).rows.map((row) => row?.id)).toEqual(ids);
    const scope = rows.find(({ __typename }) => __typename === 'CapacityScope')?.id ?? '';
    const mixed = await nodes([ids[0] ?? '', scope], 'alice');
    expect(mixed.rows.map((row) => row?.id)).toEqual([ids[0], undefined]);
    expect(mixed.errors).toMatchObject([{ path: ['nodes', 1], extensions: { code: 'forbidden' } }]);
  });

  it('refuse an id of another form', async () => {
    const answer = await relay.graphql('{ node(id: "same-tab") { id } }', { requester: 'alice' });
    expect(answer.errors).toMatchObject([{ extensions: { code: 'invalid_argument', errors: [{ parameter: 'id' }] } }]);
  });
});

describe('the holder of a grant', () => {
  it('does not learn the owner from the ids, and finds each row by its id', async () => {
    const rows = await rowsOf(select(`siteSession(sessionId: "${sessionId}")`, 'SiteSession'), VIEWER);
    expect(rows.map(({ __typename }) => __typename).sort()).toEqual(['Site', 'SiteGrant', 'SiteSession']);
    const ids = rows.map(({ id }) => id);
    for (const id of ids) expect(Buffer.from(id, 'base64url').toString()).not.toContain(ALICE.user);
    const found = await nodes(ids, VIEWER);
    expect([found.errors, found.rows.map((row) => row?.id)]).toEqual([[], ids]);
    // A viewer gets another id for the site than its owner does. So the viewer's id finds nothing for the owner.
    const site = ids.filter((_, i) => rows[i]?.__typename === 'Site');
    expect((await nodes(site, ALICE.user)).rows).toEqual([null]);
  });
});

describe('a row that outlives a restart of its client', () => {
  it('keeps its id when its client starts again', async () => {
    const query = `{ connection(userId: "${BOB.user}", clientId: "${BOB.client}") { id instanceId } }`;
    const before = await relay.graphql(query, { requester: 'admin' });
    await relay.client({ user: BOB.user, client_id: BOB.client, instance_id: 'next' });
    const after = await relay.graphql(query, { requester: 'admin' });
    expect(after.data?.connection).toEqual({ id: before.data?.connection.id, instanceId: 'next' });
  });
});

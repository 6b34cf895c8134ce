/** Tests Apollo Client and urql, set up as the documentation says, with a real relay. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi, type MockInstance } from 'vitest';
import { CLIENT, CONTEXTS, ENDED, LIVE, openClient, openWorld, USERS, WINDOWS, type World } from '../kit/world.ts';
import { openApollo } from './apollo.ts';
import type { CachingClient, Variables, Watch } from './cache.ts';
import * as documents from './documents.ts';
import { openUrql } from './urql.ts';

const LIBRARIES = [
  ['Apollo Client', openApollo],
  ['urql with graphcache', openUrql],
] as const;

type Row = Readonly<Record<string, any>>;

const idsOf = (rows: readonly Row[], name: string): string[] =>
  rows.map((row) => `${row['userId']}/${row[name]}`).sort();

/** Returns the expected `user/id` of the rows of both users. The ids are the same for both. */
const idsOfBoth = (count: number, prefix: string): string[] =>
  USERS.flatMap((user) => Array.from({ length: count }, (_, i) => `${user}/${prefix}-${i}`)).sort();

describe.each(LIBRARIES)('%s, as the documentation sets it up', (name, open) => {
  let world: World;
  let client: CachingClient;
  let warnings: MockInstance[];

  beforeAll(async () => void (world = await openWorld()));
  afterAll(() => world?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    warnings = (['warn', 'error'] as const).map((name) => vi.spyOn(console, name));
    client = await open(world.relay.url, world.relay.admin);
  });
  afterEach(() => {
    client[Symbol.dispose]();
    const said = warnings.flatMap(({ mock }) => mock.calls);
    vi.restoreAllMocks();
    expect(said).toEqual([]);
  });

  const watched = async (query: string, variables?: Variables): Promise<Watch> => {
    const watch = client.watch(query, variables);
    await expect.poll(() => watch.current()).not.toBeNull();
    return watch;
  };

  test('shows each row of two users with the same local ids', async () => {
    using watch = await watched(documents.EVERYTHING);
    const { users, connections, contexts, browserWindows, sites, pendingRpcs } = watch.current() ?? {};
    expect(users.nodes.map(({ userId }: Row) => userId)).toEqual(USERS);
    expect(idsOf(connections.nodes, 'clientId')).toEqual(USERS.map((user) => `${user}/${CLIENT}`));
    const ofContexts = contexts.edges.map(({ node }: { node: Row }) => node);
    expect(idsOf(ofContexts, 'contextId')).toEqual(idsOfBoth(CONTEXTS, 'context'));
    expect(idsOf(browserWindows.nodes, 'windowId')).toEqual(idsOfBoth(WINDOWS, 'window'));
    expect(sites.nodes.map(({ title }: Row) => title)).toEqual(USERS.map((user) => `Board of ${user}`));
    expect(idsOf(pendingRpcs.nodes, 'commandId')).toEqual(USERS.map((user) => `${user}/${LIVE}`));
    for (const user of users.nodes) {
      const own = [user.contexts, user.connections.nodes[0].contexts, user.browserWindows, user.streams];
      expect(own.map(({ nodes }) => [nodes.length, ...new Set(nodes.map(({ userId }: Row) => userId))])).toEqual([
        [CONTEXTS, user.userId],
        [CONTEXTS, user.userId],
        [WINDOWS, user.userId],
        [user.streams.nodes.length, user.userId],
      ]);
    }
  });

  test('keeps the histories of one command id of two users apart', async () => {
    using watch = await watched(documents.HISTORIES, { commandId: ENDED });
    const { alice, bob } = watch.current() ?? {};
    expect(alice.nodes.map(({ kind }: Row) => kind)).toEqual(bob.nodes.map(({ kind }: Row) => kind));
    expect(new Set(alice.nodes.map(({ stream }: Row) => stream))).toEqual(new Set([`alice/clients/${CLIENT}`]));
    expect(new Set(bob.nodes.map(({ stream }: Row) => stream))).toEqual(new Set([`bob/clients/${CLIENT}`]));
  });

  test('changes the row of one user when an event says so, without code for it', async () => {
    using connections = await watched(documents.CONNECTIONS);
    using follow = client.follow(documents.CONNECTION_EVENTS);
    const rows = (): Row[] => connections.current()?.['connections'].nodes;
    const [alice, before] = rows();
    // The subscription may begin after an event, so new instances take over until the first event arrives.
    await using next = new AsyncDisposableStack();
    const replace = async (instanceId: string): Promise<number> => {
      const runtime = await openClient(world.relay, () => world.token('bob'), instanceId);
      next.defer(() => runtime.close({ withinMs: 0 }));
      return follow.events.length;
    };
    let instances = 0;
    await expect.poll(() => replace(`next-${instances++}`), { interval: 500 }).toBeGreaterThan(0);
    const last = `next-${instances - 1}`;
    await expect.poll(() => rows()[1]).toMatchObject({ ...before, instanceId: last, status: 'CONNECTED' });
    expect(rows()[0]).toEqual(alice);
    await next.disposeAsync();
    await expect.poll(() => rows()[1]).toMatchObject({ instanceId: last, status: 'DISCONNECTED' });
    expect(rows()[0]).toEqual(alice);
    await openClient(world.relay, () => world.token('bob'), 'again').then((runtime) => world.keep(runtime));
    await expect.poll(() => rows()[1]).toMatchObject({ instanceId: 'again', status: 'CONNECTED' });
  });

  test('changes the row of a command while its updates arrive', async () => {
    const key = { userId: 'alice', clientId: CLIENT, commandId: `${LIVE}-of-${name.length}` };
    const input = { ...key, action: 'note.wait', waitFor: 'ACKNOWLEDGED' };
    const started = await client.mutate(documents.INVOKE, { input });
    expect(started['invokeAction']).toMatchObject({ outcome: null, command: { outcome: null } });
    using command = await watched(documents.COMMAND, key);
    using follow = client.follow(documents.COMMAND_UPDATES, key);
    const row = (): Row => command.current()?.['command'];
    await expect.poll(() => follow.events.length).toBeGreaterThan(0);
    expect(row()).toMatchObject({ outcome: null, delivery: { stage: 'ACKNOWLEDGED' } });
    await world.cancel(key);
    await expect.poll(row).toMatchObject({ outcome: 'COMPLETED', delivery: { stage: 'TERMINAL' } });
    expect(row()['id']).toBe(started['invokeAction'].command.id);
  });

  test('loads a row again by its id, and changes it in the list', async () => {
    using titles = await watched(documents.CONTEXT_TITLES);
    const rows = (): Row[] => titles.current()?.['contexts'].edges.map(({ node }: { node: Row }) => node);
    const same = rows().filter(({ contextId }) => contextId === 'context-3');
    expect(same.map(({ userId, title }) => [userId, title])).toEqual(USERS.map((user) => [user, 'Page 3']));
    const title = `Changed for ${name}`;
    await world.rename('alice', 'context-3', title);
    const loaded = await client.load(documents.CONTEXT_NODE, { id: same[0]?.['id'] });
    expect(loaded['node']).toMatchObject({ id: same[0]?.['id'], title });
    const shown = (): unknown[] => rows().filter(({ contextId }) => contextId === 'context-3');
    await expect.poll(shown).toMatchObject([{ ...same[0], title }, same[1]]);
    await world.rename('alice', 'context-3', 'Page 3');
  });

  test('joins the pages of a list to all of its rows', async () => {
    using pages = await watched(documents.CONTEXTS_PAGE, { first: 10 });
    const list = () => pages.current()?.['contexts'];
    const rows = (): Row[] => list().edges.map(({ node }: { node: Row }) => node);
    expect(rows().length).toBe(10);
    for (let pagesRead = 1; list().pageInfo.hasNextPage; pagesRead++) {
      expect(pagesRead).toBeLessThan(10);
      await pages.more({ after: list().pageInfo.endCursor });
      await expect.poll(() => rows().length).toBe(Math.min((pagesRead + 1) * 10, 2 * CONTEXTS));
    }
    expect(idsOf(rows(), 'contextId')).toEqual(idsOfBoth(CONTEXTS, 'context'));
  });

  test('keeps what two queries select of an object without an id', async () => {
    using kind = await watched(documents.VIEWER_KIND);
    using mode = await watched(documents.VIEWER_MODE);
    expect(kind.current()).toMatchObject({ viewer: { kind: 'ADMIN' }, delivery: { summary: {} } });
    expect(mode.current()?.['viewer'].mode).toMatch(/DIRECT|SHARED/);
  });

  test('shows no row of another user, and says why an operation was refused', async () => {
    const { connections, users } = await client.load(documents.EVERYTHING);
    const ids = [...connections.nodes, ...users.nodes].map(({ id }: Row) => id);
    using alice = await open(world.relay.url, await world.token('alice'));
    const { nodes } = await alice.load(documents.NODES, { ids });
    expect(nodes).toMatchObject([{ clientId: CLIENT }, null, { userId: 'alice' }, null]);
    await expect(alice.load(documents.USERS_LIST)).rejects.toMatchObject({ code: 'forbidden' });
    using stranger = await open(world.relay.url, 'no token of this relay');
    await expect(stranger.load(documents.USERS_LIST)).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  test('reads an outcome and a refusal of a call by their types', async () => {
    const input = { userId: 'bob', clientId: CLIENT, action: 'note.add', params: { text: name } };
    const done = await client.mutate(documents.INVOKE, { input });
    expect(done['invokeAction']).toMatchObject({ outcome: 'COMPLETED', result: { added: name } });
    const refused = await client.mutate(documents.INVOKE, { input: { ...input, action: 'note.burn' } });
    expect(refused['invokeAction']).toMatchObject({ code: 'action_not_advertised' });
  });
});

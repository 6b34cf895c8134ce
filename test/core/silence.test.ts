/** Tests answers that may lack rows because a node is silent. */
import { describe, expect, it } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import type { Completeness, ObservedSource } from '../../src/core/completeness.ts';
import { LOOP_ALIVE_MS, NODE_LEASE_MS } from '../../src/core/limits.ts';
import { nodeView } from '../../src/core/commands/inspection.ts';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import { admin, connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const QUERY = { userId: 'alice' };

/** The answers that report their completeness and depend on the reports of nodes, by name. */
const ANSWERS: Readonly<Record<string, (opened: TestCore) => Promise<Completeness> | Completeness>> = {
  sites: async ({ core }) => (await core.sites.list(admin, null, {})).completeness,
  connections: async ({ core }) => (await core.connections.list(alice, {}, {})).completeness,
  'connections of users': async ({ core }) => first(await core.connections.ofUsers(alice, ['alice'], 10)).completeness,
  users: async ({ core }) => (await core.users.list(admin, {})).completeness,
  'a user on the list': async ({ core }) => first((await core.users.list(admin, {})).nodes).completeness,
  'a user': async ({ core }) => present(await core.users.get(alice, 'alice')).completeness,
  'sample of actions': async ({ core }) => (await core.actions.sample(admin, null)).completeness,
  'actions of a connection': async ({ core }) =>
    core.actions.completeness(present(await core.connections.get(alice, { userId: 'alice', clientId: 'tab' }))),
  contexts: async ({ core }) => (await core.contexts.list(alice, {}, {})).completeness,
  'contexts of users': async ({ core }) => first(await core.contexts.lists(alice, [QUERY], 10)).completeness,
  'count of contexts': async ({ core }) => (await core.contexts.count(alice, {})).completeness,
  windows: async ({ core }) => (await core.contexts.windows(alice, {}, {})).completeness,
  'windows of users': async ({ core }) => first(await core.contexts.windowLists(alice, [QUERY], 10)).completeness,
  'count of windows': async ({ core }) => (await core.contexts.windowCount(alice, {})).completeness,
  workers: async ({ core }) => first(await core.contexts.workers(alice, [{ ...QUERY, view: 'idle' }], 10)).completeness,
  'pending RPCs': async ({ core }) => (await core.rpc.pending(alice, {}, {})).completeness,
  'count of pending RPCs': async ({ core }) => (await core.rpc.count(alice, {})).completeness,
  'count of pending RPCs by node': async ({ core }) => (await core.rpc.countByNode(alice, {})).completeness,
  'pending RPCs of users': async ({ core }) => first(await core.rpc.ofUsers(alice, ['alice'], 10)).completeness,
  'pending RPCs of clients': async ({ core }) =>
    first(await core.rpc.ofClients(alice, [{ userId: 'alice', clientId: 'tab' }], 10)).completeness,
  'summary of delivery': async ({ core }) => (await core.delivery.summary(admin)).completeness,
  'nodes of delivery': async ({ core }) => (await core.delivery.nodes(admin, {})).completeness,
  'commands of delivery': async ({ core }) => (await core.delivery.commands(admin, {}, {})).completeness,
};

async function place(silent: readonly string[]) {
  const wrap = (backend: MemoryBackend): MemoryBackend => ({
    ...backend,
    nodes: { ...backend.nodes, silent: () => silent },
  });
  const opened = await testCore({ wrap });
  await connect(opened.core, alice);
  return opened;
}

describe('an answer with rows of a silent node', () => {
  it.each(Object.entries(ANSWERS))('%s: reports the gap, and names the node', async (_, answer) => {
    await using opened = await place(['n8', 'n9']);
    const { complete, sources } = await answer(opened);
    const gaps = sources.filter(({ reason }) => reason === 'node_silent');
    // An answer about one connection names only the node of that connection.
    const named = gaps.map(({ nodeId }) => nodeId);
    if (answer === ANSWERS['actions of a connection']) return expect([complete, named]).toEqual([true, []]);
    expect([complete, named]).toEqual([false, ['n8', 'n9']]);
    const own = sources.filter(({ reason }) => reason !== 'node_silent');
    expect(own.length).toBeGreaterThan(0);
    const silence = { complete: false, observed: 0, limit: null, asOf: opened.clock.now() };
    const source = gaps[0]?.source;
    expect(own.map((one) => one.source)).toContain(source);
    expect(gaps).toMatchObject([silence, silence] satisfies Partial<ObservedSource>[]);
  });

  it.each(Object.entries(ANSWERS))('%s: is complete while every node beats', async (_, answer) => {
    await using opened = await place([]);
    expect(await answer(opened)).toMatchObject({ complete: true });
  });

  it('names the silent node of a connection beside its advertisements', async () => {
    await using opened = await place(['n1']);
    expect(await ANSWERS['actions of a connection']?.(opened)).toMatchObject({
      complete: false,
      sources: [
        { nodeId: 'n1', observed: 1, reason: null },
        { nodeId: 'n1', observed: 0, reason: 'node_silent' },
      ],
    });
  });

  it.each([
    ['n1', 'the owner', false, 'n1'],
    ['n1', 'the holder of a grant', false, null],
    ['n9', 'the owner', true, undefined],
  ])('names the silent node %s of the host beside the state of one session, for %s', async (...given) => {
    const [silent, who, complete, named] = given;
    await using opened = await place([silent]);
    const { sites } = opened.core;
    const host = user('alice', 'host', 'invoke', 'connect');
    await connect(opened.core, host, { clientId: 'tab' });
    await sites.register(host, { siteId: 'board', clientId: 'tab' });
    const session = present(await sites.open(host, 'board', {}));
    const { sessionId } = session.view.session;
    const requester = who === 'the owner' ? host : await sites.holder(session.token);
    const view = present(await sites.session(requester, sessionId));
    expect(view.state).toBe('active');
    for (const seen of [view.site, present(view.site)]) {
      const { complete: whole, sources } = await sites.completeness(seen);
      expect(whole).toBe(complete);
      const gaps = sources.filter(({ reason }) => reason === 'node_silent');
      expect(gaps.map(({ nodeId }) => nodeId)).toEqual(named === undefined ? [] : [named]);
      expect(sources[0]).toMatchObject({ source: 'sites', complete: true, observed: 1 });
    }
  });

  it('can be a list of the connections on silent nodes only', async () => {
    for (const silent of [['n1', 'n9'], ['n9'], []]) {
      await using opened = await place(silent);
      const { connections } = opened.core;
      const { nodes } = await connections.list(alice, { onSilentNodes: true }, {});
      expect(nodes.map(({ nodeId }) => nodeId)).toEqual(silent.filter((node) => node === 'n1'));
      expect((await connections.list(alice, { onSilentNodes: false }, {})).nodes).toHaveLength(1);
    }
  });

  it('has cursors that stay valid when another node falls silent', async () => {
    let silent = ['n1'];
    const wrap = (backend: MemoryBackend): MemoryBackend => {
      return { ...backend, nodes: { ...backend.nodes, silent: () => silent } };
    };
    await using opened = await testCore({ wrap });
    for (const clientId of ['a', 'b']) await connect(opened.core, alice, { clientId });
    const { connections } = opened.core;
    const query = { onSilentNodes: true };
    const first = await connections.list(alice, query, { first: 1 });
    const after = first.cursors.end();
    silent = ['n1', 'n9'];
    expect((await connections.list(alice, query, { first: 1, after })).nodes).toMatchObject([{ clientId: 'b' }]);
    await expect(connections.list(alice, {}, { first: 1, after })).rejects.toMatchObject({ code: 'invalid_cursor' });
  });

  it('leaves out silent nodes that the filter excludes', async () => {
    await using opened = await place(['n8', 'n9']);
    const { core } = opened;
    for (const nodeId of ['n1', 'n9']) {
      const [connections, commands] = [
        await core.connections.list(admin, { nodeId }, {}),
        await core.delivery.commands(admin, { nodeId }, {}),
      ];
      for (const { completeness } of [connections, commands])
        expect(completeness.sources.flatMap((one) => one.nodeId ?? [])).toEqual(nodeId === 'n9' ? ['n9'] : []);
    }
  });
});

describe('the list of silent nodes', () => {
  it('serves every answer for a quarter of a second; a failed read serves none', async () => {
    let looks = 0;
    let away = false;
    const silent = async (): Promise<readonly string[]> => {
      looks++;
      if (away) throw new CallboardError('store_unavailable', 'away');
      return [];
    };
    const wrap = (backend: MemoryBackend): MemoryBackend => ({ ...backend, nodes: { ...backend.nodes, silent } });
    await using opened = await testCore({ wrap });
    const list = () => opened.core.connections.list(alice, {}, {});
    await Promise.all([list(), list()]);
    await opened.clock.advance(249);
    await list();
    expect(looks).toBe(1);
    away = true;
    await opened.clock.advance(1);
    await expect(Promise.all([list(), list()])).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(looks).toBe(2);
    away = false;
    await list();
    expect(looks).toBe(3);
  });
});

describe('the view of a node', () => {
  const node = {
    nodeId: 'n1',
    listenerAlive: true,
    reconciliationAlive: true,
    activeDrainers: 0,
    connectionWaiters: 0,
    links: 0,
    unfinishedCommands: 0,
    draining: false,
    counters: new Map<string, number>(),
    process: null,
    updatedAt: 1_000,
  };
  const seen = (age: number) => {
    const { listenerAlive, reconciliationAlive, stale } = nodeView(node, 1_000 + age);
    return [listenerAlive, reconciliationAlive, stale];
  };

  it('shows its loops as alive only while its report is recent, and as stale once its lease has ended', () => {
    expect(seen(LOOP_ALIVE_MS - 1)).toEqual([true, true, false]);
    expect(seen(LOOP_ALIVE_MS)).toEqual([false, false, false]);
    expect(seen(NODE_LEASE_MS)).toEqual([false, false, true]);
    expect(nodeView({ ...node, listenerAlive: false }, 1_000)).toMatchObject({ listenerAlive: false });
  });
});

function first<T>(rows: readonly T[]): T {
  return present(rows[0] ?? null);
}

function present<T>(value: T | null): T {
  if (value === null) throw new Error('nothing was found');
  return value;
}

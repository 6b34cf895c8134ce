/** Tests users, actions and connections, merged from several stores. */
import { describe, expect, it } from 'vitest';
import { ACTION_SAMPLE, ACTION_SAMPLE_CONNECTIONS } from '../../src/core/limits.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { admin, advertisement, user } from '../kit/core.ts';
import { testRooms, type Rooms } from '../kit/rooms.ts';

const alice = user('alice', 'invoke');

describe('the list of users', () => {
  it('merges the users of connections and history, in order of user, with both counts', async () => {
    const { backend, users } = testRooms();
    for (const key of ['bob/a', 'bob/b', 'dave/a']) {
      const [userId = '', clientId = ''] = key.split('/');
      await backend.connections.connect(hello(userId, clientId));
    }
    for (const [userId, suffix] of [
      ['alice', 's'],
      ['bob', 's'],
      ['bob', 't'],
      ['bob', 'u'],
    ] as const) {
      await backend.history.retain(newMessage({ userId, suffix }));
    }
    const whole = await users.list(admin, {});
    expect(whole.nodes.map(({ id, connectionCount, streamCount }) => [id, connectionCount, streamCount])).toEqual([
      ['alice', 0, 1],
      ['bob', 2, 3],
      ['dave', 1, 0],
    ]);
    const paged: unknown[] = [];
    let after: string | null = null;
    for (let page = await users.list(admin, { first: 1 }); ; page = await users.list(admin, { first: 1, after })) {
      paged.push(...page.nodes);
      after = page.cursors.end();
      if (!page.hasNextPage) break;
    }
    expect(paged).toEqual(whole.nodes);
    const named = async (text: string) => (await users.list(admin, { first: 1 }, text)).nodes.map(({ id }) => id);
    expect(await named('OB')).toEqual(['bob']);
    expect(await named('av')).toEqual(['dave']);
    expect(await named('zz')).toEqual([]);
    await expect(named('')).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  it.each(['connections', 'history'] as const)('loses no user if the %s store returns short pages', async (cut) => {
    const rooms = testRooms();
    const { connections, history } = rooms.backend;
    for (const userId of ['a', 'b', 'd', 'f']) await connections.connect(hello(userId, 'tab'));
    for (const userId of ['a', 'c', 'e', 'f', 'g']) await history.retain(newMessage({ userId }));
    const store = rooms.backend[cut];
    const whole = store.users.bind(store);
    store.users = (page) => whole({ ...page, first: 1 });
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await rooms.users.list(admin, { first: 3, after });
      seen.push(...page.nodes.map((user) => `${user.id}${user.connectionCount}${user.streamCount}`));
      after = page.hasNextPage ? page.cursors.end() : null;
    } while (after !== null);
    expect(seen).toEqual(['a11', 'b10', 'c01', 'd10', 'e01', 'f11', 'g01']);
  });

  it('reports what each inspector contributed', async () => {
    const { backend, clock, users } = testRooms();
    await backend.connections.connect(hello('alice', 'tab'));
    const source = { nodeId: null, complete: true, limit: null, reason: null, asOf: clock.now() };
    const sources = [
      { ...source, source: 'connections', observed: 1 },
      { ...source, source: 'streams', observed: 0 },
    ];
    const { nodes, completeness } = await users.list(admin, {});
    expect(completeness).toEqual({ complete: true, sources });
    expect(nodes[0]?.completeness).toEqual({ complete: true, sources });
    expect((await users.get(alice, 'alice'))?.completeness).toEqual({ complete: true, sources });
  });

  it('names the inspector that dropped something, and still answers', async () => {
    const { backend, users } = testRooms({ streamsPerUser: 1 });
    for (const suffix of ['a', 'b']) await backend.history.retain(newMessage({ suffix }));
    const view = await users.get(admin, 'alice');
    expect(view).toMatchObject({ streamCount: 1, completeness: { complete: false } });
    expect(view?.completeness.sources.map(({ source, reason }) => [source, reason])).toEqual([
      ['connections', null],
      ['streams', 'evicted'],
    ]);
    expect((await users.list(admin, {})).completeness.complete).toBe(false);
  });
});

describe('one user', () => {
  it('is null if no inspector knows it, but always returns the requester itself', async () => {
    const { users } = testRooms();
    expect(await users.get(admin, 'alice')).toBeNull();
    expect(await users.get(alice, 'alice')).toMatchObject({ id: 'alice', connectionCount: 0, streamCount: 0 });
  });
});

describe('the sample of actions', () => {
  const fill = async ({ backend }: Rooms, clients: number, actions: readonly string[]): Promise<void> => {
    for (let i = 0; i < clients; i++) {
      const request = hello('alice', `c${String(i).padStart(5, '0')}`, { actions: actions.map(advertisement) });
      await backend.connections.connect(request);
    }
  };

  it('contains the advertisements of live clients, unchanged, and is complete', async () => {
    const rooms = testRooms();
    await fill(rooms, 2, ['open', 'close']);
    await rooms.backend.connections.disconnect({ userId: 'alice', clientId: 'c00000' }, 1, 'client_closed');
    const sample = await rooms.actions.sample(admin, null);
    expect(sample.complete).toBe(true);
    expect(sample.items).toEqual([
      { userId: 'alice', clientId: 'c00001', instanceId: 'i1', action: advertisement('open') },
      { userId: 'alice', clientId: 'c00001', instanceId: 'i1', action: advertisement('close') },
    ]);
  });

  it('finds one action by name, wherever in the registry it is', async () => {
    const rooms = testRooms();
    await fill(rooms, ACTION_SAMPLE_CONNECTIONS + 50, ['open']);
    await rooms.backend.connections.connect(hello('zoe', 'tab', { actions: [advertisement('rare')] }));
    const sample = await rooms.actions.sample(admin, 'rare');
    expect(sample).toMatchObject({ complete: true, items: [{ userId: 'zoe' }] });
    expect(await rooms.actions.sample(admin, null, undefined, 'AR')).toMatchObject({ items: [{ userId: 'zoe' }] });
    expect(await rooms.actions.sample(admin, 'nowhere')).toMatchObject({ complete: true, items: [] });
    await expect(rooms.actions.sample(admin, 'not a name')).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  it.each([
    [ACTION_SAMPLE_CONNECTIONS, 1, ACTION_SAMPLE_CONNECTIONS, null],
    [ACTION_SAMPLE_CONNECTIONS + 1, 1, ACTION_SAMPLE_CONNECTIONS, 'connections'],
    [ACTION_SAMPLE / 5, 5, ACTION_SAMPLE, null],
    [166, 6, 996, null],
    [10, 100, ACTION_SAMPLE, null],
    [11, 100, ACTION_SAMPLE, 'actions'],
    [10, 101, ACTION_SAMPLE, 'actions'],
  ])('of %d connections with %d actions each has %d, cut by %s', async (clients, each, held, cut) => {
    const rooms = testRooms();
    await fill(
      rooms,
      clients,
      Array.from({ length: each }, (_, i) => `a${i}`),
    );
    const sample = await rooms.actions.sample(admin, null);
    expect(sample.items).toHaveLength(held);
    expect(sample.complete).toBe(cut === null);
    const gaps = sample.completeness.sources.filter((source) => !source.complete);
    expect(gaps.map(({ source, reason }) => [source, reason])).toEqual(cut === null ? [] : [[cut, 'limit_reached']]);
  });

  it('is incomplete when the registry is larger than it may read', async () => {
    const rooms = testRooms();
    await fill(rooms, 10_001, []);
    expect(await rooms.actions.sample(admin, null)).toMatchObject({ items: [], complete: false });
  });
});

describe('a listing of connections', () => {
  it('ends a filtered page early in a large registry, and continues from there', async () => {
    const rooms = testRooms();
    for (let i = 0; i < 10_050; i++) await rooms.backend.connections.connect(hello(`u${i}`, 'tab'));
    await rooms.backend.connections.connect(hello('zoe', 'tab', { nodeId: 'n2' }));
    const first = await rooms.connections.list(admin, { nodeId: 'n2' }, {});
    expect(first).toMatchObject({ nodes: [], hasNextPage: true });
    const second = await rooms.connections.list(admin, { nodeId: 'n2' }, { after: first.cursors.end() });
    expect(second).toMatchObject({ nodes: [{ userId: 'zoe' }], hasNextPage: false });
  });

  it('refuses invalid ids', async () => {
    const { connections } = testRooms();
    await expect(connections.list(admin, { nodeId: 'n/1' }, {})).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(connections.get(admin, { userId: 'alice', clientId: '' })).rejects.toMatchObject({
      code: 'invalid_argument',
    });
  });
});

describe('history queries', () => {
  it.each([
    '',
    'alice',
    'alice/',
    '/clients/tab',
    'alice/a b',
    'alice/a//b',
    'alice/a/',
    `alice/${'a/'.repeat(8)}a`,
    'alice/é',
  ])('refuse the stream %j', async (stream) => {
    const requested = testRooms().history.messages(admin, { stream }, {});
    await expect(requested).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { errors: [{ parameter: 'stream' }] },
    });
  });

  it('accept a stream of any depth up to eight, with its user in any spelling', async () => {
    const { backend, history } = testRooms();
    const suffix = 'a/b/c/d/e/f/g/h';
    await backend.history.retain(newMessage({ userId: 'a@b.org', suffix }));
    expect((await history.messages(admin, { stream: `A@B.org/${suffix}` }, {}))?.nodes).toHaveLength(1);
    expect(await history.messages(admin, { stream: 'a@b.org/other' }, {})).toBeNull();
  });

  it('accept kinds in any order, and refuse none and unknown ones', async () => {
    const { backend, history } = testRooms();
    for (const kind of ['event', 'result', 'event'] as const) await backend.history.retain(newMessage({ kind }));
    const stream = 'alice/clients/tab';
    const first = await history.messages(admin, { stream, kinds: ['result', 'event'] }, { first: 1 });
    const after = first?.cursors.end();
    const rest = await history.messages(admin, { stream, kinds: ['event', 'result', 'event'] }, { after });
    expect(rest?.nodes.map(({ kind }) => kind)).toEqual(['result', 'event']);
    await expect(history.messages(admin, { stream, kinds: [] }, {})).rejects.toMatchObject({
      code: 'invalid_argument',
    });
    await expect(history.messages(admin, { stream, kinds: ['nope' as 'event'] }, {})).rejects.toMatchObject({
      code: 'invalid_argument',
    });
    await expect(history.messages(admin, { stream, afterTime: NaN }, {})).rejects.toMatchObject({
      code: 'invalid_argument',
    });
  });

  it('accept any start of a suffix as a prefix, and an empty one as none', async () => {
    const { backend, history } = testRooms();
    for (const suffix of ['clients/a', 'sites/b']) await backend.history.retain(newMessage({ suffix }));
    const found = async (prefix: string) => (await history.streams(admin, 'alice', prefix, {})).nodes.length;
    expect([await found(''), await found('c'), await found('clients/a'), await found('clients/ab')]).toEqual([
      2, 1, 1, 0,
    ]);
    await expect(history.streams(admin, 'alice', 'a b', {})).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  it("report dropped messages as a gap in a command's history", async () => {
    const { backend, history } = testRooms({ streamsPerUser: 1 });
    for (const suffix of ['a', 'b']) await backend.history.retain(newMessage({ suffix, commandId: 'c1' }));
    const page = await history.ofCommand(admin, 'alice', 'c1', {});
    expect(page.nodes).toHaveLength(1);
    expect(page.completeness).toMatchObject({
      complete: false,
      sources: [{}, { source: 'messages', reason: 'evicted' }],
    });
  });
});

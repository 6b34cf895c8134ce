/** Defines the contract tests of listings of connections: filters, order and pages. */
import { expect, it } from 'vitest';
import type { ConnectionFilter } from '../../src/core/connections/connection-filter.ts';
import { toJson } from '../../src/core/json.ts';
import { FORGET_MS } from '../../src/core/limits.ts';
import { ALL, hello, ids, paged } from './kit/connections-model.ts';
import type { Bench } from './kit/bench.ts';

const NO_TEXTS = {
  summary: null,
  description: null,
  version: null,
  checksArguments: null,
  schema: null,
  metadata: null,
};

/** Defines the tests of listings for `connectionContract`. */
export function listing(bench: () => Bench, order: 'units' | 'bytes'): void {
  const lose = async (userId: string, clientId: string): Promise<void> => {
    const { connections } = bench().backend;
    const [row] = await connections.get([{ userId, clientId }]);
    await connections.disconnect({ userId, clientId }, row?.epoch ?? 0, 'client_closed');
  };

  it("lists in order of user and then client, also if one user's name is a prefix of another's", async () => {
    const keys = ['b/a', 'a/z', 'a/b', 'a!/a', 'a/Z', 'A/a', 'a./~', 'é/a', '\u{1f600}/a', '\uffe0/a'];
    for (const key of keys) {
      const [userId = '', clientId = ''] = key.split('/');
      await bench().backend.connections.connect(hello(userId, clientId));
    }
    const beyond = ['\u{1f600}/a', '\uffe0/a'];
    if (order === 'bytes') beyond.reverse();
    const expected = ['A/a', 'a/Z', 'a/b', 'a/z', 'a!/a', 'a./~', 'b/a', 'é/a', ...beyond];
    expect(await ids(bench(), ALL)).toEqual(expected);
    expect(await paged(bench(), ALL, 3)).toEqual(expected);
  });

  it('lists only the rows that match the filter', async () => {
    const { connections } = bench().backend;
    for (let i = 0; i < 12; i++) {
      await connections.connect(hello(`u${i % 3}`, `c${i}`, { nodeId: `n${i % 2}` }));
    }
    await lose('u0', 'c0');
    expect(await paged(bench(), { ...ALL, userId: 'u1' }, 2)).toEqual(['u1/c1', 'u1/c10', 'u1/c4', 'u1/c7']);
    expect(await paged(bench(), { ...ALL, userId: 'u0', nodeId: 'n0' }, 1)).toEqual(['u0/c0', 'u0/c6']);
    expect(await paged(bench(), { ...ALL, status: 'disconnected' }, 5)).toEqual(['u0/c0']);
    expect(await paged(bench(), { ...ALL, userId: 'u0', status: 'connected' }, 1)).toEqual(['u0/c3', 'u0/c6', 'u0/c9']);
    expect(await paged(bench(), { ...ALL, userId: 'nobody' }, 5)).toEqual([]);
    expect(await paged(bench(), { ...ALL, nodeId: 'n9' }, 5)).toEqual([]);
    const even = await paged(bench(), { ...ALL, nodeId: 'n0' }, 5);
    expect(await paged(bench(), { ...ALL, nodeIds: ['n9', 'n0'] }, 5)).toEqual(even);
    expect(await paged(bench(), { ...ALL, nodeIds: [] }, 5)).toEqual([]);
  });

  it('returns the connections that are forgotten next: lost ones first, then those that were silent longest', async () => {
    const { connections } = bench().backend;
    const quietest = async (first: number) => (await connections.quietest(first)).rows.map(({ clientId }) => clientId);
    for (const clientId of ['lost-last', 'lost-first', 'silent', 'heard']) {
      await connections.connect(hello('alice', clientId));
      await bench().advance(1);
    }
    const [heard] = await connections.get([{ userId: 'alice', clientId: 'silent' }]);
    await lose('alice', 'lost-first');
    await bench().advance(1);
    await lose('alice', 'lost-last');
    await bench().advance(1);
    expect(await quietest(10)).toEqual(['lost-first', 'lost-last', 'silent', 'heard']);
    expect(await quietest(3)).toEqual(['lost-first', 'lost-last', 'silent']);
    await connections.touch({ userId: 'alice', clientId: 'silent' }, heard?.epoch ?? 0);
    expect(await quietest(10)).toEqual(['lost-first', 'lost-last', 'heard', 'silent']);
    await bench().advance(FORGET_MS);
    expect(await quietest(10)).toEqual(['heard', 'silent']);
  });

  it('lists only the rows whose type, actions, labels or ids match', async () => {
    const { connections } = bench().backend;
    const open = { ...NO_TEXTS, name: 'tab.open' };
    const labels = { room: 12, labels: { tier: 'Gold', sold: true }, nested: { room: 13 }, note: 'say "hi"' };
    await connections.connect(hello('ann', 'phone', { clientType: 'mobile', metadata: toJson(labels) }));
    await connections.connect(
      hello('ann', 'tab-1', { actions: [open], metadata: toJson({ room: '13', tier: 'tin' }) }),
    );
    await connections.connect(
      hello('bob', 'TAB-2', { actions: [{ ...open, name: 'tab.open.all' }], metadata: toJson([1]) }),
    );
    const shown = (filter: Partial<ConnectionFilter>) => paged(bench(), { ...ALL, ...filter }, 1);
    const labelled = (key: string, value: string) => shown({ labels: [{ key, value }] });
    expect(await shown({ clientType: 'mobile' })).toEqual(['ann/phone']);
    expect(await shown({ action: 'tab.open' })).toEqual(['ann/tab-1']);
    expect(await labelled('room', '12')).toEqual(['ann/phone']);
    expect(await labelled('room', '13')).toEqual(['ann/tab-1']);
    expect(await labelled('tier', 'Gold')).toEqual(['ann/phone']);
    expect(await labelled('tier', 'gold')).toEqual([]);
    expect(await labelled('sold', 'true')).toEqual(['ann/phone']);
    expect(await labelled('note', 'say "hi"')).toEqual(['ann/phone']);
    const both = [
      { key: 'room', value: '12' },
      { key: 'tier', value: 'Gold' },
    ];
    expect(await shown({ labels: both })).toEqual(['ann/phone']);
    expect(await shown({ labels: both, userId: 'bob' })).toEqual([]);
    expect(await shown({ text: 'tab' })).toEqual(['ann/tab-1', 'bob/TAB-2']);
    expect(await shown({ text: 'gol' })).toEqual(['ann/phone']);
    expect(await shown({ text: '"hi"' })).toEqual(['ann/phone']);
    expect(await shown({ text: 'bo', clientType: 'browser' })).toEqual(['bob/TAB-2']);
    expect(await shown({ text: 'room' })).toEqual([]);
  });

  it('ends the listing with an exactly full page, without promising another', async () => {
    const { connections } = bench().backend;
    for (const client of ['a', 'b', 'c']) await connections.connect(hello('alice', client));
    expect((await connections.list(ALL, { first: 3, after: null })).next).toBeNull();
    expect((await connections.list(ALL, { first: 2, after: null })).next).toEqual(['alice', 'b']);
    expect((await connections.list(ALL, { first: 1, after: ['alice', 'b'] })).next).toBeNull();
  });

  it("returns each user's first connections and their total", async () => {
    const { connections } = bench().backend;
    for (let i = 0; i < 5; i++) await connections.connect(hello('alice', `c${i}`));
    await connections.connect(hello('bob', 'x'));
    const found = await connections.ofUsers(['bob', 'nobody', 'alice'], 2);
    const seen = found.map(({ total, rows }) => [total, rows.map(({ clientId }) => clientId)]);
    expect(seen).toEqual([
      [1, ['x']],
      [0, []],
      [5, ['c0', 'c1']],
    ]);
  });

  it('lists each user with a row once, with the number of rows', async () => {
    const { connections } = bench().backend;
    for (const key of ['b/1', 'a/1', 'b/2', 'c/1']) {
      const [userId = '', clientId = ''] = key.split('/');
      await connections.connect(hello(userId, clientId));
    }
    await lose('c', '1');
    const first = await connections.users({ first: 2, after: null });
    expect(first.rows.map(({ row }) => row)).toEqual([
      { userId: 'a', count: 1 },
      { userId: 'b', count: 2 },
    ]);
    const second = await connections.users({ first: 2, after: first.next });
    expect(second.rows.map(({ row }) => row)).toEqual([{ userId: 'c', count: 1 }]);
    expect(second.next).toBeNull();
  });
}

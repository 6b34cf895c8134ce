/** Tests listings that are read page by page while rows are added and removed. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PageArgs } from '../../src/core/cursors.ts';
import type { Page } from '../../src/core/page.ts';
import { FORGET_MS, PING_MS } from '../../src/core/limits.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { admin } from '../kit/core.ts';
import { testRooms, type Rooms } from '../kit/rooms.ts';

const RETENTION_MS = 100 * FORGET_MS;

/**
 * The rows that are added and removed between two pages, by number. Every row that exists from the first page to the
 * last must be returned exactly once.
 */
type Churn = { readonly come: readonly number[]; readonly go: readonly number[] };

const place = fc.integer({ min: 0, max: 39 });
const places = fc.uniqueArray(place, { maxLength: 6 });
const churns = fc.array(fc.record({ come: places, go: places }), { minLength: 1, maxLength: 8 });
const starts = fc.uniqueArray(place, { minLength: 1, maxLength: 30 });
const sizes = fc.integer({ min: 1, max: 5 });

type World = {
  /** Adds the rows with the names in `come`, and removes those with the names in `go`. */
  change(churn: { readonly come: readonly string[]; readonly go: readonly string[] }): Promise<void>;
  page(args: PageArgs): Promise<Page<string>>;
  nameOf(place: number): string;
};

async function check(make: (rooms: Rooms) => World): Promise<void> {
  await fc.assert(
    fc.asyncProperty(starts, churns, sizes, async (start, steps, first) => {
      const world = make(testRooms({ retentionMs: RETENTION_MS }));
      await readUnderChurn(world, { start, steps, first });
    }),
    { numRuns: 80 },
  );
}

type Course = { readonly start: readonly number[]; readonly steps: readonly Churn[]; readonly first: number };

async function readUnderChurn(world: World, { start, steps, first }: Course): Promise<void> {
  const survivors = new Set(start.map(world.nameOf));
  await world.change({ come: [...survivors], go: [] });
  const seen: string[] = [];
  let after: string | null = null;
  for (let step = 0; ; step++) {
    const page: Page<string> = await world.page({ first, after });
    expect(page.nodes.length).toBeLessThanOrEqual(first);
    expect(new Set(page.nodes.map((_, index) => page.cursors.at(index))).size).toBe(page.nodes.length);
    seen.push(...page.nodes);
    if (!page.hasNextPage) break;
    after = page.cursors.end();
    const come = (steps[step]?.come ?? []).map(world.nameOf);
    const go = (steps[step]?.go ?? []).map(world.nameOf).filter((name) => !come.includes(name));
    await world.change({ come, go });
    for (const name of go) survivors.delete(name);
  }
  expect(seen).toEqual([...new Set(seen)]);
  for (const name of survivors) expect(seen).toContain(name);
}

/** Lets the removed rows be forgotten while the others show signs of life, and then adds the new ones. */
async function reconnect(rooms: Rooms, live: Set<string>, { come, go }: Parameters<World['change']>[0]): Promise<void> {
  const { connections } = rooms.backend;
  const keyOf = (name: string) => ({ userId: name.split('/')[0] ?? '', clientId: name.split('/')[1] ?? '' });
  const epochOf = async (name: string) => (await connections.get([keyOf(name)]))[0]?.epoch ?? 0;
  for (const name of go) {
    await connections.disconnect(keyOf(name), await epochOf(name), 'client_closed');
    live.delete(name);
  }
  for (let beat = 0; go.length > 0 && beat < FORGET_MS / PING_MS; beat++) {
    await rooms.clock.advance(PING_MS);
    for (const name of live) await connections.touch(keyOf(name), await epochOf(name));
  }
  for (const name of come) {
    const { userId, clientId } = keyOf(name);
    await connections.connect(hello(userId, clientId));
    live.add(name);
  }
}

describe('paging while rows are added and removed', () => {
  it('returns each connection that exists throughout exactly once', async () => {
    await check((rooms) => {
      const live = new Set<string>();
      return {
        nameOf: (at) => `u${at % 5}/c${at}`,
        change: (churn) => reconnect(rooms, live, churn),
        async page(args) {
          const page = await rooms.connections.list(admin, {}, args);
          return { ...page, nodes: page.nodes.map(({ userId, clientId }) => `${userId}/${clientId}`) };
        },
      };
    });
  });

  it('returns each matching connection of a filtered listing exactly once', async () => {
    await check((rooms) => {
      const live = new Set<string>();
      return {
        nameOf: (at) => `u${at % 3}/c${at}`,
        change: (churn) => reconnect(rooms, live, churn),
        async page(args) {
          const page = await rooms.connections.list(admin, { status: 'connected', nodeId: 'n1' }, args);
          return { ...page, nodes: page.nodes.map(({ userId, clientId }) => `${userId}/${clientId}`) };
        },
      };
    });
  });

  it('returns each user exactly once, whichever inspector observes it', async () => {
    await check((rooms) => {
      const live = new Set<string>();
      return {
        // A third of the users is known to the history only, and a third to both the history and the connections.
        nameOf: (at) => `u${at}`,
        async change({ come, go }) {
          const connected = (names: readonly string[]) =>
            names.filter((name) => Number(name.slice(1)) % 3 !== 0).map((name) => `${name}/c`);
          await reconnect(rooms, live, { come: connected(come), go: connected(go) });
          for (const name of come) {
            if (Number(name.slice(1)) % 3 !== 1) await rooms.backend.history.retain(newMessage({ userId: name }));
          }
        },
        async page(args) {
          const page = await rooms.users.list(admin, args);
          return { ...page, nodes: page.nodes.map(({ id }) => id) };
        },
      };
    });
  });

  it('returns each stream exactly once', async () => {
    await check((rooms) => {
      const live = new Set<string>();
      const write = async (suffixes: Iterable<string>): Promise<void> => {
        for (const suffix of suffixes) await rooms.backend.history.retain(newMessage({ suffix }));
      };
      return {
        nameOf: (at) => `s${at}`,
        async change({ come, go }) {
          for (const suffix of go) live.delete(suffix);
          // A stream is forgotten when nothing has been written to it for the retention time.
          for (let half = 0; go.length > 0 && half < 2; half++) {
            await write(live);
            await rooms.clock.advance(RETENTION_MS / 2);
          }
          for (const suffix of come) live.add(suffix);
          await write(come);
        },
        async page(args) {
          const page = await rooms.history.streams(admin, 'alice', null, args);
          return { ...page, nodes: page.nodes.map(({ suffix }) => suffix) };
        },
      };
    });
  });

  it('returns each retained message exactly once, and those that are added in between too', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(0, 1, 30), { minLength: 1, maxLength: 40 }),
        sizes,
        async (gaps, first) => {
          const rooms = testRooms({ retentionMs: 100, streamMessages: 20 });
          const retained: string[] = [];
          const retain = async () => {
            retained.push(`m${retained.length}`);
            await rooms.backend.history.retain(newMessage({ id: retained.at(-1) ?? '' }));
          };
          for (let i = 0; i < 10; i++) await retain();
          const seen: string[] = [];
          let after: string | null = null;
          for (const gap of gaps) {
            const page = await rooms.history.messages(admin, { stream: 'alice/clients/tab' }, { first, after });
            seen.push(...(page?.nodes ?? []).map(({ id }) => id));
            after = page?.cursors.end() ?? after;
            await rooms.clock.advance(gap);
            await retain();
          }
          const rest = await rooms.history.messages(admin, { stream: 'alice/clients/tab' }, { first: 1000, after });
          seen.push(...(rest?.nodes ?? []).map(({ id }) => id));
          expect(seen).toEqual([...new Set(seen)]);
          const all = await rooms.history.messages(admin, { stream: 'alice/clients/tab' }, { first: 1000 });
          expect(seen).toEqual(expect.arrayContaining((all?.nodes ?? []).map(({ id }) => id)));
          expect(seen).toEqual(retained.filter((id) => seen.includes(id)));
        },
      ),
      { numRuns: 80 },
    );
  });
});

describe('a page', () => {
  it('has a cursor for each row, from which the listing continues after that row', async () => {
    const rooms = testRooms();
    for (const client of ['a', 'b', 'c', 'd']) await rooms.backend.connections.connect(hello('alice', client));
    const page = await rooms.connections.list(admin, {}, { first: 3 });
    const rest = await rooms.connections.list(admin, {}, { after: page.cursors.at(1) });
    expect(rest.nodes.map(({ clientId }) => clientId)).toEqual(['c', 'd']);
    expect(rest.hasNextPage).toBe(false);
    expect(page.cursors.end()).toBe(page.cursors.at(2));
  });

  it('of one requester or filter is refused for another', async () => {
    const rooms = testRooms();
    for (const client of ['a', 'b']) await rooms.backend.connections.connect(hello('alice', client));
    const first = await rooms.connections.list(admin, { userId: 'alice' }, { first: 1 });
    const endCursor = first.cursors.end();
    const again = (requester: typeof admin, userId: string | null) =>
      rooms.connections.list(requester, { userId }, { after: endCursor });
    await expect(again({ ...admin, name: 'other' } as typeof admin, 'alice')).rejects.toMatchObject({
      code: 'invalid_cursor',
    });
    await expect(again(admin, null)).rejects.toMatchObject({ code: 'invalid_cursor' });
    await expect(again(admin, 'bob')).rejects.toMatchObject({ code: 'invalid_cursor' });
    await expect(rooms.users.list(admin, { after: endCursor })).rejects.toMatchObject({ code: 'invalid_cursor' });
    expect((await again(admin, ' alice ')).nodes).toHaveLength(1);
  });

  it("continues from the end of a user's first connections or streams", async () => {
    const rooms = testRooms();
    for (const name of ['a', 'b', 'c']) {
      await rooms.backend.connections.connect(hello('alice', name));
      await rooms.backend.history.retain(newMessage({ suffix: name }));
    }
    const [clients] = await rooms.connections.ofUsers(admin, ['alice'], 2);
    expect(clients).toMatchObject({ total: 3, hasNextPage: true });
    const restOfClients = await rooms.connections.list(admin, { userId: 'alice' }, { after: clients?.cursors.end() });
    expect(restOfClients.nodes.map(({ clientId }) => clientId)).toEqual(['c']);
    const [streams] = await rooms.history.ofUsers(admin, ['alice'], 2);
    const restOfStreams = await rooms.history.streams(admin, 'alice', null, { after: streams?.cursors.end() });
    expect(restOfStreams.nodes.map(({ suffix }) => suffix)).toEqual(['c']);
    expect((await rooms.history.ofUsers(admin, ['alice', 'bob'], 3)).map((page) => page.hasNextPage)).toEqual([
      false,
      false,
    ]);
  });
});

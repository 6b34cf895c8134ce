import fc from 'fast-check';
import { expect, it } from 'vitest';
import { advertisement, connect, user, type TestClient } from '../kit/core.ts';
import { stage, until, type Stage } from './kit.ts';

/** Rows of one listing: made, taken away again where that can be, and told apart by a text. */
type Listing = {
  /** The path without its paging, and the member that names a row. */
  readonly path: string;
  readonly member: string;
  /** The same by GraphQL: the field with its arguments but those of paging, what is selected of a row, and how to read its name. */
  readonly field: string;
  readonly select: string;
  readonly put: (at: House, n: number) => Promise<Row>;
};
type House = Stage & { readonly alive: Set<TestClient> };
type Row = { readonly name: string; drop?(): Promise<void> };

const admin = { kind: 'admin', name: 't', expiresAt: null } as const;
const actions = [advertisement('open')];

async function live(at: House, userId: string, clientId: string): Promise<TestClient> {
  const client = await connect(at.callboard.core, user(userId), { clientId, actions });
  at.alive.add(client);
  return client;
}

/** Gone from the registry, and not only disconnected, while all others go on showing signs of life. */
async function forget(at: House, client: TestClient): Promise<void> {
  at.alive.delete(client);
  await client.session.closed('client_closed');
  for (let second = 0; second < 60; second += 30) {
    await at.clock.advance(30_500);
    for (const { session } of at.alive) await session.alive();
  }
}

async function runs(at: Stage, clientId: string, commandId: string): Promise<void> {
  const target = { userId: 'alice', clientId, action: 'open', params: null, commandId, connectWithinMs: 300_000 };
  void at.callboard.core.rpc.invoke(user('alice'), { ...target, respondWithinMs: 300_000 });
  const key = { userId: 'alice', clientId, commandId };
  await until(async () => (await at.callboard.core.delivery.command(admin, key)) !== null);
}

/** Odd and even, so that rows come and go everywhere in the order. */
const scattered = (n: number): string => `r${((n * 7919) % 997).toString().padStart(3, '0')}-${n}`;

const LISTINGS: Readonly<Record<string, Listing>> = {
  connections: {
    path: '/connections?user_id=alice',
    member: 'client_id',
    field: 'connections(userId: "alice"',
    select: 'clientId',
    async put(at, n) {
      const name = scattered(n);
      const client = await live(at, 'alice', name);
      return { name, drop: () => forget(at, client) };
    },
  },
  users: {
    path: '/users?',
    member: 'user_id',
    field: 'users(',
    select: 'id',
    async put(at, n) {
      const name = scattered(n);
      const client = await live(at, name, 'tab');
      return { name, drop: () => forget(at, client) };
    },
  },
  'pending RPCs': {
    path: '/rpc/pending?user_id=alice',
    member: 'command_id',
    field: 'pendingRpcs(filter: { userId: "alice" }',
    select: 'commandId',
    async put(at, n) {
      const name = scattered(n);
      await runs(at, 'away', name);
      const key = { userId: 'alice', clientId: 'away', commandId: name };
      return { name, drop: async () => void (await at.callboard.core.rpc.cancel(admin, key, null)) };
    },
  },
  streams: {
    path: '/history/streams?user_id=alice',
    member: 'stream',
    field: 'streams(userId: "alice"',
    select: 'key',
    async put(at, n) {
      const client = scattered(n);
      await runs(at, client, 'c1');
      return { name: `alice/clients/${client}` };
    },
  },
  messages: {
    path: '/history/messages?stream=alice/clients/away',
    member: 'command_id',
    field: 'messages(stream: "alice/clients/away"',
    select: 'commandId',
    async put(at, n) {
      const name = scattered(n);
      await runs(at, 'away', name);
      return { name };
    },
  },
};

type Page = { readonly names: readonly string[]; readonly next: string | null };
type Read = (at: Stage, listing: Listing, page: { limit: number; after: string | null }) => Promise<Page>;

const DOORS: Readonly<Record<string, Read>> = {
  async REST(at, { path, member }, { limit, after }) {
    const cursor = after === null ? '' : `&cursor=${encodeURIComponent(after)}`;
    const answer = await at.rest(`${path}&limit=${limit}${cursor}`);
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    const { items, next_cursor } = JSON.parse(answer.text);
    return { names: items.map((item: Record<string, string>) => item[member]), next: next_cursor };
  },
  async GraphQL(at, { field, select }, { limit, after }) {
    const query = `query ($after: String) { rows: ${field} first: ${limit}, after: $after) { nodes { name: ${select} } nextCursor } }`;
    const { rows } = await at.data(query, { variables: { after } });
    return { names: rows.nodes.map(({ name }: { name: string }) => name), next: rows.nextCursor };
  },
};

const cases = Object.keys(LISTINGS).flatMap((name) => Object.keys(DOORS).map((door) => ({ name, door })));
const plans = fc.record({
  before: fc.integer({ min: 1, max: 12 }),
  limit: fc.integer({ min: 1, max: 5 }),
  /** Between two pages: rows that come, and places among the present rows that go. */
  between: fc.array(fc.record({ come: fc.nat(3), go: fc.array(fc.nat(20), { maxLength: 2 }) }), { maxLength: 8 }),
});

it.each(cases)(
  'paging through $name over $door neither repeats nor loses a row that lives through it',
  async ({ name, door }) => {
    const listing = LISTINGS[name];
    const read = DOORS[door];
    if (!listing || !read) throw new Error(name);
    await fc.assert(
      fc.asyncProperty(plans, async ({ before, limit, between }) => {
        await using house = await stage();
        const at: House = { ...house, alive: new Set() };
        const there = new Map<string, Row>();
        const gone = new Set<string>();
        let made = 0;
        const put = async (): Promise<void> => {
          const row = await listing.put(at, made++);
          there.set(row.name, row);
        };
        for (let i = 0; i < before; i++) await put();
        const throughout = new Set(there.keys());
        const seen: string[] = [];
        let after: string | null = null;
        let turns = 0;
        do {
          const page: Page = await read(at, listing, { limit, after });
          expect(page.names.length).toBeLessThanOrEqual(limit);
          seen.push(...page.names);
          after = page.next;
          const { come, go } = between[turns++] ?? { come: 0, go: [] };
          for (let i = 0; i < come; i++) await put();
          for (const place of go) {
            const row = [...there.values()][place % there.size];
            if (!row?.drop) continue;
            await row.drop();
            there.delete(row.name);
            throughout.delete(row.name);
            gone.add(row.name);
          }
        } while (after !== null);
        expect(new Set(seen).size).toBe(seen.length);
        expect([...throughout].filter((row) => !seen.includes(row))).toEqual([]);
        expect(seen.filter((row) => !there.has(row) && !gone.has(row))).toEqual([]);
      }),
      { numRuns: 20 },
    );
  },
);

/**
 * Tests that each listing is complete when it is read page by page while rows are added and removed, over REST and
 * GraphQL.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FORGET_MS, NODE_LEASE_MS } from '../../src/core/limits.ts';
import { advertisement, connect, user, type TestClient } from '../kit/core.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';
import { numRuns } from '../kit/store.ts';
import { unawaited } from '../kit/patience.ts';

/** A listing under test: how it is read over REST and GraphQL, and how a row is added. */
type Listing = {
  /**
   * Returns the path of the listing for a user, without paging parameters. `member` is the name of the member that
   * identifies a row.
   */
  readonly path: (user: string) => string;
  readonly member: string;
  /**
   * Returns the listing's field over GraphQL, with its arguments except those of paging. `select` is the selection of a
   * row.
   */
  readonly field: (user: string) => string;
  readonly select: string;
  readonly put: (at: ChurnTarget, n: number) => Promise<Row>;
};
/** A relay. `user` owns the rows; each run has another user. */
type ChurnTarget = TestRelay & {
  readonly alive: Set<TestClient>;
  /** The clients that have disconnected and are still listed. */
  readonly leaving: Set<TestClient>;
  readonly user: string;
};
/**
 * One row of a listing. `drop` ends what the row shows. The row leaves the listing at once, or when dropped rows are
 * forgotten.
 */
type Row = { readonly name: string; readonly drop?: () => Promise<void> };

const admin = { kind: 'admin', name: 't', expiresAt: null } as const;
const actions = [advertisement('open')];
const LEAP_MS = NODE_LEASE_MS - 2_000;

async function live(at: ChurnTarget, userId: string, clientId: string): Promise<TestClient> {
  const client = await connect(at.callboard.core, user(userId), { clientId, actions });
  at.alive.add(client);
  return client;
}

async function disconnect(at: ChurnTarget, client: TestClient): Promise<void> {
  at.alive.delete(client);
  at.leaving.add(client);
  await client.session.closed('client_closed');
}

/**
 * Waits until disconnected clients are forgotten, while all others show signs of life. The clock leaps, because running
 * each timer of a minute over Redis takes seconds. No leap is longer than a node's lease.
 */
async function forget(at: ChurnTarget): Promise<void> {
  if (at.leaving.size === 0) return;
  for (let passed = 0; passed <= FORGET_MS; passed += LEAP_MS) {
    await at.clock.leap(LEAP_MS);
    for (const { session } of at.alive) await session.alive();
  }
  at.leaving.clear();
}

async function runs(at: ChurnTarget, clientId: string, commandId: string): Promise<void> {
  const userId = at.user;
  const target = { userId, clientId, action: 'open', params: null, commandId, connectWithinMs: 300_000 };
  unawaited(at.callboard.core.rpc.invoke(user(userId), { ...target, respondWithinMs: 300_000 }));
  const key = { userId, clientId, commandId };
  await until(async () => (await at.callboard.core.delivery.command(admin, key)) !== null);
}

/**
 * Returns the name of the n-th row. Names are in mixed order, so that rows are added and removed everywhere in a
 * listing.
 */
const scattered = (n: number): string => `r${((n * 7919) % 997).toString().padStart(3, '0')}-${n}`;

const LISTINGS: Readonly<Record<string, Listing>> = {
  connections: {
    path: (name) => `/connections?user_id=${name}`,
    member: 'client_id',
    field: (name) => `connections(userId: "${name}"`,
    select: 'clientId',
    async put(at, n) {
      const name = scattered(n);
      const client = await live(at, at.user, name);
      return { name, drop: () => disconnect(at, client) };
    },
  },
  users: {
    path: () => '/users?',
    member: 'user_id',
    field: () => 'users(',
    select: 'userId',
    async put(at, n) {
      const name = scattered(n);
      const client = await live(at, name, 'tab');
      return { name, drop: () => disconnect(at, client) };
    },
  },
  'pending RPCs': {
    path: (name) => `/rpc/pending?user_id=${name}`,
    member: 'command_id',
    field: (name) => `pendingRpcs(filter: { userId: "${name}" }`,
    select: 'commandId',
    async put(at, n) {
      const name = scattered(n);
      await runs(at, 'away', name);
      const key = { userId: at.user, clientId: 'away', commandId: name };
      return { name, drop: async () => void (await at.callboard.core.rpc.cancel(admin, key, null)) };
    },
  },
  streams: {
    path: (name) => `/history/streams?user_id=${name}`,
    member: 'stream',
    field: (name) => `streams(userId: "${name}"`,
    select: 'key',
    async put(at, n) {
      const client = scattered(n);
      await runs(at, client, 'c1');
      return { name: `${at.user}/clients/${client}` };
    },
  },
  messages: {
    path: (name) => `/history/messages?stream=${name}/clients/away`,
    member: 'command_id',
    field: (name) => `messages(stream: "${name}/clients/away"`,
    select: 'commandId',
    async put(at, n) {
      const name = scattered(n);
      await runs(at, 'away', name);
      return { name };
    },
  },
};

type Page = { readonly names: readonly string[]; readonly next: string | null };
type Read = (at: ChurnTarget, listing: Listing, page: { limit: number; after: string | null }) => Promise<Page>;

const INTERFACES: Readonly<Record<string, Read>> = {
  async REST(at, { path, member }, { limit, after }) {
    const cursor = after === null ? '' : `&cursor=${encodeURIComponent(after)}`;
    const answer = await at.rest(`${path(at.user)}&limit=${limit}${cursor}`);
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    const { items, next_cursor } = JSON.parse(answer.text);
    return { names: items.map((item: Record<string, string>) => item[member]), next: next_cursor };
  },
  async GraphQL(at, { field, select }, { limit, after }) {
    const query = `query ($after: String) { rows: ${field(at.user)} first: ${limit}, after: $after) { nodes { name: ${select} } nextCursor } }`;
    const { rows } = await at.data(query, { variables: { after } });
    return { names: rows.nodes.map(({ name }: { name: string }) => name), next: rows.nextCursor };
  },
};

const cases = Object.keys(LISTINGS).flatMap((name) =>
  Object.keys(INTERFACES).map((interfaceName) => ({ name, interfaceName })),
);
type Plan = {
  readonly before: number;
  readonly limit: number;
  /** The changes between two pages: how many rows are added, and the positions of the rows that are removed. */
  readonly between: readonly { readonly come: number; readonly go: readonly number[] }[];
};
const plans: fc.Arbitrary<Plan> = fc.record({
  before: fc.integer({ min: 1, max: 12 }),
  limit: fc.integer({ min: 1, max: 5 }),
  between: fc.array(fc.record({ come: fc.nat(3), go: fc.array(fc.nat(20), { maxLength: 2 }) }), { maxLength: 8 }),
});

/** Adds and removes rows, and records which of them exist throughout. */
function crowd(at: ChurnTarget, listing: Listing) {
  const there = new Map<string, Row>();
  const throughout = new Set<string>();
  const known = new Set<string>();
  let made = 0;
  return {
    known,
    throughout,
    async come(count: number, begins = false): Promise<void> {
      for (let i = 0; i < count; i++) {
        const row = await listing.put(at, made++);
        there.set(row.name, row);
        known.add(row.name);
        if (begins) throughout.add(row.name);
      }
    },
    async go(place: number): Promise<void> {
      const row = [...there.values()][place % there.size];
      if (!row?.drop) return;
      await row.drop();
      there.delete(row.name);
      throughout.delete(row.name);
    },
  };
}

async function page(at: ChurnTarget, { listing, read }: { listing: Listing; read: Read }, plan: Plan): Promise<void> {
  const { before, limit, between } = plan;
  const rows = crowd(at, listing);
  await rows.come(before, true);
  const seen: string[] = [];
  let after: string | null = null;
  for (let turn = 0; turn === 0 || after !== null; turn++) {
    const { names, next }: Page = await read(at, listing, { limit, after });
    expect(names.length).toBeLessThanOrEqual(limit);
    seen.push(...names);
    after = next;
    const { come, go } = between[turn] ?? { come: 0, go: [] };
    await rows.come(come);
    for (const place of go) await rows.go(place);
    await forget(at);
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect([...rows.throughout].filter((row) => !seen.includes(row))).toEqual([]);
  expect(seen.filter((row) => !rows.known.has(row))).toEqual([]);
}

it.each(cases)(
  'paging through $name over $interfaceName neither repeats nor loses a row that exists throughout',
  async ({ name, interfaceName }) => {
    const listing = LISTINGS[name];
    const read = INTERFACES[interfaceName];
    if (!listing || !read) throw new Error(name);
    await using relay = await startTestRelay();
    let run = 0;
    const leaving = new Set<TestClient>();
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const at: ChurnTarget = { ...relay, alive: new Set(), leaving, user: `user-${run++}` };
        // Users of the previous run must not be listed.
        await forget(at);
        await page(at, { listing, read }, plan);
        for (const client of at.alive) await disconnect(at, client);
      }),
      { numRuns: numRuns(15) },
    );
  },
  60_000,
);

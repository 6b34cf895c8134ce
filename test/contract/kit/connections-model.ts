/** Models connections in a simple way, and draws random acts to compare a ConnectionStore with the model. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { ANY_CONNECTION, type ConnectionFilter } from '../../../src/core/connections/connection-filter.ts';
import type { ConnectRequest } from '../../../src/core/connections/connection-store.ts';
import { type Connection, connectionStatus, type ConnectionStatus } from '../../../src/core/connections/connection.ts';
import { DEAD_MS, FORGET_MS } from '../../../src/core/limits.ts';
import type { Position } from '../../../src/core/page.ts';
import type { Bench } from './bench.ts';

type Act =
  | { kind: 'connect'; userId: string; clientId: string; instanceId: string; nodeId: string }
  | { kind: 'touch' | 'advertise' | 'disconnect'; userId: string; clientId: string; behind: number }
  | { kind: 'advance'; ms: number };

const userId = fc.constantFrom('a', 'a!', 'b');
const clientId = fc.constantFrom('x', 'y', 'z');
const times = [0, 1, 15_000, 30_000, 44_999, 59_999, 60_000, 119_999, 120_000];

export const connectionActs: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('connect' as const),
      userId,
      clientId,
      instanceId: fc.constantFrom('i1', 'i2'),
      nodeId: fc.constantFrom('n1', 'n2'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('touch' as const, 'advertise' as const, 'disconnect' as const),
      userId,
      clientId,
      behind: fc.constantFrom(0, 0, 0, 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(...times) }) },
);

/**
 * A simple ConnectionStore: it keeps a plain list of rows, and answers every request by scanning the whole list. After
 * each act, the store under test must give the same answers.
 */
export class ConnectionModel {
  #rows: Connection[] = [];
  readonly #bench: Bench;
  #acts = 0;

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  async run(act: Act): Promise<void> {
    this.#acts++;
    if (act.kind === 'advance') await this.#bench.advance(act.ms);
    this.#rows = this.#rows.filter((row) => this.#now < (this.#lostAt(row) ?? Infinity) + FORGET_MS);
    if (act.kind === 'connect') await this.#connect(act);
    else if (act.kind !== 'advance') await this.#change(act);
    await this.#compare();
  }

  get #now(): number {
    return this.#bench.now();
  }

  /** The last epoch of each client. It is kept for forgotten rows too, because no epoch is used twice. */
  readonly #lastEpochs = new Map<string, number>();

  #lostAt(row: Connection): number | null {
    const dead = this.#now - row.lastSeenAt >= DEAD_MS ? row.lastSeenAt + DEAD_MS : null;
    return row.disconnectedAt ?? dead;
  }

  #find(key: { userId: string; clientId: string }): Connection | null {
    return this.#rows.find((row) => row.userId === key.userId && row.clientId === key.clientId) ?? null;
  }

  #put(connection: Connection): Connection {
    const others = this.#rows.filter((row) => row.userId !== connection.userId || row.clientId !== connection.clientId);
    const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    this.#rows = [...others, connection].sort((a, b) => compare(a.userId, b.userId) || compare(a.clientId, b.clientId));
    return connection;
  }

  async #connect({ kind: _, ...ids }: Act & { kind: 'connect' }): Promise<void> {
    const request = { ...ids, clientType: 'web' as const, host: false, places: false, metadata: null, actions: [] };
    const previous = this.#find(ids);
    const same = previous?.instanceId === ids.instanceId;
    const kind = previous === null ? 'connected' : same ? 'resumed' : 'replaced';
    const replaced = kind === 'replaced' && previous ? this.#replacing(previous) : null;
    const kept = {
      replacedInstanceId: previous?.replacedInstanceId ?? null,
      replacedAt: previous?.replacedAt ?? null,
      predecessors: previous?.predecessors ?? [],
    };
    const result = await this.#bench.backend.connections.connect(request);
    const { epoch } = result.connection;
    const last = this.#lastEpochs.get(`${ids.userId}/${ids.clientId}`) ?? 0;
    expect(epoch).toBeGreaterThan(last);
    this.#lastEpochs.set(`${ids.userId}/${ids.clientId}`, epoch);
    const connection: Connection = {
      ...request,
      epoch,
      connectedAt: this.#now,
      lastSeenAt: this.#now,
      disconnectedAt: null,
      disconnectCause: null,
      closeCode: null,
      ...(replaced ?? kept),
    };
    expect(result).toEqual({ kind, connection: this.#put(connection), previous });
  }

  #replacing(previous: Connection): Pick<Connection, 'replacedInstanceId' | 'replacedAt' | 'predecessors'> {
    const { instanceId, nodeId, disconnectCause } = previous;
    const cause = disconnectCause ?? (this.#lostAt(previous) === null ? 'replaced' : 'heartbeat_lost');
    const latest = { instanceId, nodeId, replacedAt: this.#now, cause };
    const predecessors = [latest, ...previous.predecessors].slice(0, 10);
    return { replacedInstanceId: instanceId, replacedAt: this.#now, predecessors };
  }

  async #change({ kind, behind, ...key }: Act & { kind: 'touch' | 'advertise' | 'disconnect' }): Promise<void> {
    const { connections } = this.#bench.backend;
    const row = this.#find(key);
    const epoch = (row?.epoch ?? 1) - behind;
    const bound = row !== null && behind === 0 ? row : null;
    const up = bound && this.#lostAt(bound) === null ? bound : null;
    if (kind === 'touch') {
      expect(await connections.touch(key, epoch)).toEqual(up && this.#put({ ...up, lastSeenAt: this.#now }));
    } else if (kind === 'advertise') {
      const action = { name: `n${this.#acts}`, summary: null, description: null, version: null, checksArguments: null };
      const actions = [{ ...action, schema: null, metadata: null }];
      expect(await connections.advertise(key, epoch, actions)).toEqual(up && this.#put({ ...up, actions }));
    } else {
      const down = bound && { disconnectedAt: this.#lostAt(bound) ?? this.#now, disconnectCause: 'operator' as const };
      const expected = bound?.disconnectedAt === null ? this.#put({ ...bound, ...(down ?? {}) }) : bound;
      expect(await connections.disconnect(key, epoch, 'operator')).toEqual(expected);
    }
  }

  async #compare(): Promise<void> {
    const { connections } = this.#bench.backend;
    const all = { first: 100, after: null };
    const listed = async (status: ConnectionStatus | null, userId: string | null): Promise<Connection[]> =>
      (await connections.list({ ...ANY_CONNECTION, userId, status }, all)).rows.map(({ row }) => row);
    expect(await listed(null, null)).toEqual(this.#rows);
    for (const status of ['connected', 'stale', 'disconnected'] as const) {
      expect(await listed(status, null)).toEqual(
        this.#rows.filter((row) => connectionStatus(row, this.#now) === status),
      );
    }
    const users = [...new Set(this.#rows.map((row) => row.userId))];
    const ofUser = (id: string): Connection[] => this.#rows.filter((row) => row.userId === id);
    const counts = (await connections.users(all)).rows.map(({ row }) => row);
    expect(counts).toEqual(users.map((id) => ({ userId: id, count: ofUser(id).length })));
    expect(await connections.ofUsers(['b', 'a'], 1)).toEqual(
      ['b', 'a'].map((id) => ({ total: ofUser(id).length, rows: ofUser(id).slice(0, 1) })),
    );
    expect(await listed(null, 'a')).toEqual(ofUser('a'));
  }
}

// Offers helpers to the contract tests of connections: hellos, filters, and reading all pages.

export const ALL = ANY_CONNECTION;

export function hello(userId: string, clientId: string, over: Partial<ConnectRequest> = {}): ConnectRequest {
  return {
    userId,
    clientId,
    instanceId: 'i1',
    nodeId: 'n1',
    clientType: 'browser',
    host: true,
    places: false,
    metadata: null,
    actions: [],
    ...over,
  };
}

/** Returns `user/client` of the first thousand rows. */
export async function ids({ backend }: Bench, filter: ConnectionFilter): Promise<string[]> {
  const { rows } = await backend.connections.list(filter, { first: 1000, after: null });
  return rows.map(({ row }) => `${row.userId}/${row.clientId}`);
}

/** Returns `user/client` of all rows, read page by page. */
export async function paged({ backend }: Bench, filter: ConnectionFilter, first: number): Promise<string[]> {
  const found: string[] = [];
  let after: Position | null = null;
  do {
    const scan = await backend.connections.list(filter, { first, after });
    found.push(...scan.rows.map(({ row }) => `${row.userId}/${row.clientId}`));
    after = scan.next;
  } while (after !== null);
  return found;
}

/** Models contexts in a simple way, and draws random acts to compare a ContextStore with the model. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { type Connection, connectionStatus } from '../../../src/core/connections/connection.ts';
import {
  type BrowserWindow,
  type ContextFilter,
  type ContextReport,
  contextStatus,
  type ExecutionContext,
  type ReportedContext,
  type ReportedWindow,
  type ReportPart,
  type WindowFilter,
} from '../../../src/core/contexts/context.ts';
import type { ClientKey } from '../../../src/core/ids.ts';
import { DEAD_MS, FORGET_MS } from '../../../src/core/limits.ts';
import type { Position, Scan } from '../../../src/core/page.ts';
import type { Bench } from './bench.ts';
import { hello } from './connections-model.ts';

type Who = { readonly userId: string; readonly clientId: string };
type Act =
  | ({ readonly kind: 'connect'; readonly instanceId: string } & Who)
  | ({ readonly kind: 'touch' | 'disconnect' } & Who)
  | ({ readonly kind: 'report'; readonly behind: number; readonly report: ContextReport } & Who)
  | { readonly kind: 'advance'; readonly ms: number };

const requester = { userId: fc.constantFrom('a', 'a!', 'b'), clientId: fc.constantFrom('x', 'y') };
const rowId = fc.constantFrom('r', 's', 'S', 't~', 't');
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { nil: null });

const contexts: fc.Arbitrary<ReportedContext> = fc
  .record({
    contextId: rowId,
    status: fc.constantFrom('active' as const, 'idle' as const, 'closed' as const),
    ownership: fc.constantFrom('user-owned' as const, 'worker' as const),
    windowId: maybe(fc.constantFrom('w', 'v')),
    taskId: maybe(fc.constantFrom('task-1', 'task-2')),
  })
  .map((given) => context(given.contextId, given));

const windows: fc.Arbitrary<ReportedWindow> = fc
  .record({
    windowId: fc.constantFrom('w', 'v', 'u'),
    status: fc.constantFrom('open' as const, 'closed' as const),
    workerCount: fc.nat(9),
  })
  .map((given) => browserWindow(given.windowId, given));

function part<T>(row: fc.Arbitrary<T>, idOf: (row: T) => string) {
  const parts = fc.record({
    snapshot: fc.boolean(),
    set: fc.uniqueArray(row, { selector: idOf, maxLength: 4 }),
    removed: fc.uniqueArray(rowId, { maxLength: 3 }),
  });
  return maybe(
    parts.map(({ snapshot, set, removed }) => ({
      snapshot,
      set,
      removed: snapshot ? [] : removed.filter((id) => !set.some((one) => idOf(one) === id)),
    })),
  );
}

const reports: fc.Arbitrary<ContextReport> = fc.record({
  contexts: part(contexts, ({ contextId }) => contextId),
  windows: part(windows, ({ windowId }) => windowId),
});

export const contextActs: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('connect' as const),
      instanceId: fc.constantFrom('i1', 'i1', 'i2'),
      ...requester,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('report' as const),
      behind: fc.constantFrom(0, 0, 0, 1),
      report: reports,
      ...requester,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('touch' as const, 'disconnect' as const), ...requester }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      ms: fc.constantFrom(1, 20_000, 44_999, 45_000, 60_000, 119_999, 120_000),
    }),
  },
);

type Seen = { contexts: ExecutionContext[]; windows: BrowserWindow[]; reportsContexts: boolean };

/**
 * A simple ContextStore: it keeps a plain list for each client, and answers every request by scanning all lists. After
 * each act, the store under test must give the same answers.
 */
export class ContextModel {
  readonly #bench: Bench;
  readonly #seen = new Map<string, Seen>();
  readonly #rows = new Map<string, Connection>();
  readonly #keys = new Map<string, ClientKey>();

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  async run(act: Act): Promise<void> {
    if (act.kind === 'advance') await this.#bench.advance(act.ms);
    this.#forget();
    if (act.kind === 'connect') await this.#connect(act);
    else if (act.kind === 'report') await this.#report(act);
    else if (act.kind !== 'advance') await this.#change(act);
    await this.#compare();
  }

  get #now(): number {
    return this.#bench.now();
  }

  #forget(): void {
    for (const [text, row] of this.#rows) {
      const lostAt = row.disconnectedAt ?? row.lastSeenAt + DEAD_MS;
      if (this.#now < lostAt + FORGET_MS) continue;
      this.#rows.delete(text);
      this.#seen.delete(text);
    }
  }

  async #connect({ userId, clientId, instanceId }: Act & { kind: 'connect' }): Promise<void> {
    const text = `${userId}/${clientId}`;
    const result = await this.#bench.backend.connections.connect(hello(userId, clientId, { instanceId }));
    if (this.#rows.get(text)?.instanceId !== instanceId) this.#seen.delete(text);
    this.#rows.set(text, result.connection);
    this.#keys.set(text, { userId, clientId });
  }

  async #change({ kind, userId, clientId }: Act & { kind: 'touch' | 'disconnect' }): Promise<void> {
    const { connections } = this.#bench.backend;
    const text = `${userId}/${clientId}`;
    const row = this.#rows.get(text);
    if (!row) return;
    const key = { userId, clientId };
    const changed =
      kind === 'touch'
        ? await connections.touch(key, row.epoch)
        : await connections.disconnect(key, row.epoch, 'client_closed');
    if (changed) this.#rows.set(text, changed);
  }

  async #report({ userId, clientId, behind, report }: Act & { kind: 'report' }): Promise<void> {
    const text = `${userId}/${clientId}`;
    const row = this.#rows.get(text);
    const epoch = (row?.epoch ?? 1) - behind;
    const outcome = await this.#bench.backend.contexts.report({ userId, clientId }, epoch, report);
    const up = row && behind === 0 && connectionStatus(row, this.#now) !== 'disconnected';
    expect(outcome).toBe(up ? 'taken' : 'fenced');
    if (up) this.#take(text, row, report);
  }

  #take(text: string, { userId, clientId, clientType, instanceId }: Connection, report: ContextReport): void {
    const before = this.#seen.get(text) ?? { contexts: [], windows: [], reportsContexts: false };
    const stamp = { userId, clientId, clientType, instanceId, reportedAt: this.#now, linkLost: false };
    const seen = { ...before };
    if (report.contexts) {
      const { snapshot, set, removed } = report.contexts;
      const named = new Set([...set.map(({ contextId }) => contextId), ...removed]);
      const kept = snapshot ? [] : before.contexts.filter(({ contextId }) => !named.has(contextId));
      const fresh = set.map((one) => {
        const old = before.contexts.find(({ contextId }) => contextId === one.contextId);
        const same = old !== undefined && old.taskId === one.taskId;
        return { ...stamp, ...one, taskAssignedAt: one.taskId === null ? null : same ? old.taskAssignedAt : this.#now };
      });
      seen.contexts = [...kept, ...fresh].sort((a, b) => (a.contextId < b.contextId ? -1 : 1));
      seen.reportsContexts = true;
    }
    if (report.windows) {
      const { snapshot, set, removed } = report.windows;
      const named = new Set([...set.map(({ windowId }) => windowId), ...removed]);
      const kept = snapshot ? [] : before.windows.filter(({ windowId }) => !named.has(windowId));
      seen.windows = [...kept, ...set.map((one) => ({ ...stamp, ...one }))].sort((a, b) =>
        a.windowId < b.windowId ? -1 : 1,
      );
    }
    this.#seen.set(text, seen);
  }

  /** Returns the clients in the order of user and client. */
  #clients(): { readonly seen: Seen; readonly linkLost: boolean }[] {
    return [...this.#seen]
      .map(([text, seen]) => ({ text, seen, key: this.#keys.get(text) }))
      .sort((a, b) => compare(a.key?.userId, b.key?.userId) || compare(a.key?.clientId, b.key?.clientId))
      .map(({ text, seen }) => {
        const row = this.#rows.get(text);
        return { seen, linkLost: !row || connectionStatus(row, this.#now) !== 'connected' };
      });
  }

  async #compare(): Promise<void> {
    const { contexts: store } = this.#bench.backend;
    const page = { first: 1000, after: null };
    const clients = this.#clients();
    const expected = clients.flatMap(({ seen, linkLost }) => seen.contexts.map((row) => ({ ...row, linkLost })));
    expect((await store.list(ANY_CONTEXT, page)).rows.map(({ row }) => row)).toEqual(expected);
    const stale = { ...ANY_CONTEXT, userId: 'a', statuses: ['stale', 'idle'] as const };
    const kept = expected.filter((row) => row.userId === 'a' && ['stale', 'idle'].includes(contextStatus(row)));
    const workers = { ...ANY_CONTEXT, ownership: 'worker', assigned: true, clientId: 'x' } as const;
    const assigned = expected.filter(
      ({ ownership, taskId, clientId }) => ownership === 'worker' && taskId !== null && clientId === 'x',
    );
    const [some = { rows: [] }, busy = { rows: [] }] = await store.lists([stale, workers], 1000);
    expect(some.rows.map(({ row }) => row)).toEqual(kept);
    expect(busy.rows.map(({ row }) => row)).toEqual(assigned);
    expect(await store.count(stale)).toEqual({ count: kept.length, complete: true });
    const counted = clients.flatMap(({ seen, linkLost }) =>
      seen.windows.map((row) => ({ window: { ...row, linkLost }, live: countsOf(seen, row.windowId) })),
    );
    expect((await store.windows(ANY_WINDOW, page)).rows.map(({ row }) => row)).toEqual(counted);
    expect(await store.windowCount(ANY_WINDOW)).toEqual({ count: counted.length, complete: true });
    const named = counted.filter(({ window }) => window.userId === 'a' && window.windowId === 'w');
    expect(await store.windowsNamed('a', 'w')).toEqual(named.slice(0, 2));
  }
}

function countsOf({ contexts: all, reportsContexts }: Seen, windowId: string) {
  if (!reportsContexts) return null;
  const workers = all.filter(
    (row) => row.windowId === windowId && row.ownership === 'worker' && row.status !== 'closed',
  );
  const busy = workers.filter(({ taskId }) => taskId !== null).length;
  return { workers: workers.length, idle: workers.length - busy, busy };
}

function compare(a = '', b = ''): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

// Offers helpers to the contract tests of contexts: rows, reports and filters.

export const ANY_CONTEXT: ContextFilter = {
  userId: null,
  clientId: null,
  clientType: null,
  statuses: null,
  ownership: null,
  windowId: null,
  assigned: null,
  taskId: null,
};
export const ANY_WINDOW: WindowFilter = {
  userId: null,
  clientId: null,
  clientType: null,
  status: null,
  ownership: null,
};

export function context(contextId: string, over: Partial<ReportedContext> = {}): ReportedContext {
  return {
    contextId,
    status: 'active',
    ownership: 'user-owned',
    windowId: null,
    taskId: null,
    title: null,
    metadata: null,
    ...over,
  };
}

export function worker(contextId: string, over: Partial<ReportedContext> = {}): ReportedContext {
  return context(contextId, { ownership: 'worker', status: 'idle', ...over });
}

export function browserWindow(windowId: string, over: Partial<ReportedWindow> = {}): ReportedWindow {
  return {
    windowId,
    ownership: 'user-owned',
    focused: false,
    type: 'normal',
    state: 'maximized',
    incognito: false,
    tabCount: 3,
    capacity: null,
    draining: false,
    status: 'open',
    workerCount: 7,
    idleCount: 4,
    busyCount: 3,
    ...over,
  };
}

export function snapshot<T>(...set: readonly T[]): ReportPart<T> {
  return { snapshot: true, set, removed: [] };
}

export function delta<T>(set: readonly T[], ...removed: readonly string[]): ReportPart<T> {
  return { snapshot: false, set, removed };
}

export function report(contexts: ContextReport['contexts'], windows: ContextReport['windows'] = null): ContextReport {
  return { contexts, windows };
}

/** Returns `user/client/context` of the first thousand rows. */
export async function contextIds({ backend }: Bench, over: Partial<ContextFilter> = {}): Promise<string[]> {
  const { rows } = await backend.contexts.list({ ...ANY_CONTEXT, ...over }, { first: 1000, after: null });
  return rows.map(({ row }) => `${row.userId}/${row.clientId}/${row.contextId}`);
}

export async function windowIds({ backend }: Bench, over: Partial<WindowFilter> = {}): Promise<string[]> {
  const { rows } = await backend.contexts.windows({ ...ANY_WINDOW, ...over }, { first: 1000, after: null });
  return rows.map(({ row: { window } }) => `${window.userId}/${window.clientId}/${window.windowId}`);
}

/** Returns all rows of a listing, read page by page. `between` runs after each page. */
export async function allPages<T>(
  page: (after: Position | null) => Scan<T> | Promise<Scan<T>>,
  between: () => unknown = () => {},
): Promise<T[]> {
  const found: T[] = [];
  let after: Position | null = null;
  do {
    const scan: Scan<T> = await page(after);
    found.push(...scan.rows.map(({ row }) => row));
    after = scan.next;
    await between();
  } while (after !== null);
  return found;
}

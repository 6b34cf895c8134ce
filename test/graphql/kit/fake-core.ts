/** Makes a core with fixed rows, for tests of GraphQL alone. */
import { knownUser, readScope } from '../../../src/core/auth/sight.ts';
import { requireAdmin, requireScope } from '../../../src/core/auth/principal.ts';
import type { Connection } from '../../../src/core/connections/connection.ts';
import type { CancelReceipt, Core, Invocation, PendingRpc, Requester, CommandUpdate } from '../../../src/core/core.ts';
import type { Command } from '../../../src/core/commands/command.ts';
import { fail } from '../../../src/core/errors.ts';
import type { Message, ShownPayload, MessageKey, StreamSummary } from '../../../src/core/history/message.ts';
import { clientKeyText } from '../../../src/core/ids.ts';
import type { JsonText } from '../../../src/core/json.ts';
import { CLIENT_ACTIONS } from '../../../src/core/limits.ts';
import { createFeed, type Feed } from '../../../src/core/live.ts';
import { createDocumentTurns, createMessageTurns } from '../../../src/core/shares/turns.ts';
import { createShares } from '../../../src/core/shares/shares.ts';
import { createCrypto, systemLoop } from '../../../src/platform/system.ts';
import { FakeClock } from '../../kit/clock.ts';
import { contextsRoom, type FakeSites } from './contexts.ts';
import { paged, summed, type Listing } from './pages.ts';
import { T0 } from './rows.ts';

/** The rows of a fake core, and its answers to commands. */
export type FakeData = FakeSites & {
  readonly connections: readonly Connection[];
  readonly streams: readonly StreamSummary[];
  readonly messages: readonly Message[];
  readonly waits: readonly PendingRpc[];
  readonly commands: readonly Command[];
  readonly result: JsonText | null;
  /** The spilled payloads by the id of their message. */
  readonly spilled: Readonly<Record<string, ShownPayload>>;
  readonly invoke: (requester: Requester, request: unknown) => Invocation;
  readonly cancel: () => CancelReceipt;
};

export type FakeCore = {
  readonly core: Core;
  /** The calls so far in order, each as `room.method`. */
  readonly calls: string[];
  readonly updates: Feed<CommandUpdate>;
};

const NOTHING: FakeData = {
  contexts: [],
  windows: [],
  connections: [],
  streams: [],
  messages: [],
  waits: [],
  commands: [],
  result: null,
  spilled: {},
  invoke: () => fail('internal', 'not prepared'),
  cancel: () => fail('internal', 'not prepared'),
};

/** Returns a core over fixed rows, which records its calls. Pages and cursors are real. */
export function fakeCore(given: Partial<FakeData>): FakeCore {
  const data = { ...NOTHING, ...given };
  const calls: string[] = [];
  const updates = createFeed<CommandUpdate>(() => calls.push('updates.end'));
  const core: Core = {
    idempotencyWindowMs: 3_600_000,
    homeOf: () => null,
    policyReport: () => null,
    nodeWaits: () => ({ count: 0, oldestMs: 0 }),
    nodeCounts: async () => ({ live: 1, stale: 0 }),
    onHome: () => () => {},
    onLost: () => () => {},
    subscribed() {},
    pausedClients: { of: () => null, onChange: () => () => {} },
    nodeId: 'n1',
    server: { version: '1.2.3', label: null, traceUrl: null, maxBodyBytes: 1_000_000, startedAt: 0, features: [] },
    mode: 'shared',
    durability: () => ({ kind: 'store', sync: null, bytes: null, full: false, snapshotAt: null, away: null }),
    capabilities: { shared: false, allWaits: true, exactDedupCounters: true, cheapStreamSummaries: true },
    clock: new FakeClock(T0),
    loop: systemLoop,
    crypto: createCrypto('test'),
    shares: createShares(),
    messages: createMessageTurns(systemLoop),
    documents: createDocumentTurns({ shares: createShares(), loop: systemLoop }),
    sharesInUse: () => ({ used: () => 0, inStore: () => false }),
    audit: {
      events: (requester, _query, page) =>
        Promise.resolve(paged([], page, { name: 'audit', filter: {}, requester, position: () => [] })),
      check: async () => ({ rows: 0, fault: null, unchecked: 0, asOf: 0 }),
      chain: async () => ({ lines: [], lastSeq: null }),
    },
    reveals: {
      shows: () => true,
      read() {},
      ownsCall: () => false,
      readFor: async () => {},
      reveal: () => fail('not_found', 'not prepared'),
    },
    users: users(data, calls),
    connections: connections(data, calls),
    actions: actions(data),
    contexts: contextsRoom(data, calls),
    rpc: rpc(data, calls),
    history: history(data, calls),
    dedup: { allow: (requester) => void requireAdmin(requester), stats: unprepared, backend: unprepared },
    ingest: { ingest: unprepared, ingestCooperativeSiteMessage: unprepared },
    sites: noSites(),
    delivery: delivery(data, calls, updates),
    revocations: {
      ...{
        endWith() {},
        isLoaded: true,
        loaded: async () => {},
        find: () => null,
        start: () => () => {},
        readAnew() {},
      },
      ...{ list: () => fail('internal', 'not prepared'), revoke: () => fail('internal', 'not prepared') },
    },
    devices: {
      ...{ begin: unprepared, lookUp: unprepared, decide: unprepared, token: unprepared, list: unprepared },
      ...{ rename: unprepared, remove: unprepared },
    },
    pauses: {
      ...{ pause: unprepared, pauseClient: unprepared, resumeClient: unprepared, resume: unprepared },
      ...{ list: unprepared, get: unprepared, reach: unprepared, events: () => fail('internal', 'no events here') },
    },
    lookup: { find: unprepared, failures: unprepared },
    series: { read: unprepared },
    links: { open: () => fail('internal', 'no links here') },
    start: async () => {},
    drain: async () => {},
    draining: false,
    close: async () => {},
    ready: () => {},
    fullShares: () => [],
  };
  return { core, calls, updates };
}

function users({ connections: all, streams }: FakeData, calls: string[]): Core['users'] {
  const ids = [...new Set(all.map(({ userId }) => userId))].sort();
  const completeness = { complete: true, sources: [] };
  const view = (id: string) => ({
    id,
    connectionCount: all.filter(({ userId }) => userId === id).length,
    streamCount: streams.filter(({ userId }) => userId === id).length,
    completeness,
  });
  return {
    async list(requester, page) {
      calls.push('users.list');
      requireAdmin(requester);
      return paged(ids.map(view), page, {
        name: 'connections',
        filter: 'users',
        requester,
        position: ({ id }) => [id],
      });
    },
    async get(requester, id) {
      const userId = readScope(requester, id);
      return userId !== null && ids.includes(userId) ? view(userId) : null;
    },
    async many(requester, asked) {
      calls.push('users.many');
      const known = asked.map((id) => knownUser(requester, id));
      return known.map((userId) => (userId !== null && ids.includes(userId) ? view(userId) : null));
    },
  };
}

function connections({ connections: all }: FakeData, calls: string[]): Core['connections'] {
  const listing = (requester: Requester, userId: string | null, status: string | null): Listing<Connection> => ({
    name: 'connections',
    filter: { userId, status },
    requester,
    position: (row) => [row.userId, row.clientId],
  });
  const of = (id: string): Connection[] => all.filter(({ userId }) => userId === id);
  return {
    async list(requester, query, page) {
      calls.push('connections.list');
      const userId = readScope(requester, query.userId);
      return paged(userId === null ? all : of(userId), page, listing(requester, userId, query.status ?? null));
    },
    async get(requester, key) {
      readScope(requester, key.userId);
      return all.find((row) => clientKeyText(row) === clientKeyText(key)) ?? null;
    },
    many(_requester, keys) {
      calls.push('connections.many');
      return keys.map((key) => all.find((row) => clientKeyText(row) === clientKeyText(key)) ?? null);
    },
    ofUsers(requester, userIds, first) {
      calls.push('connections.ofUsers');
      return userIds.map((id) => summed(of(id), first, listing(requester, id, null)));
    },
    reconnects: (keys) => keys.map(() => 0),
    flapping: unprepared,
    top: unprepared,
    events: () => createFeed<never>(() => {}).subscription,
  };
}

function actions({ connections: all }: FakeData): Core['actions'] {
  return {
    async sample(requester, name) {
      requireAdmin(requester);
      const items = all.flatMap((row) =>
        row.actions.filter((action) => name === null || action.name === name).map((action) => ({ ...row, action })),
      );
      return { items, complete: false, completeness: { complete: false, sources: [] } };
    },
    mayInvoke: () => true,
    completeness: ({ actions, nodeId }) => {
      const own = { source: 'actions', nodeId, observed: actions.length, limit: CLIENT_ACTIONS } as const;
      return { complete: true, sources: [{ ...own, complete: true, reason: null, asOf: T0 }] };
    },
  };
}

function rpc({ waits, invoke, cancel }: FakeData, calls: string[]): Core['rpc'] {
  const listing = (requester: Requester, filter: unknown): Listing<PendingRpc> => ({
    name: 'pending_rpcs',
    filter,
    requester,
    position: ({ waiter }) => [waiter.rpcId],
  });
  const completeness = { complete: true, sources: [] };
  return {
    repeats: {
      begin: () => fail('internal', 'no agents here'),
      cancel: unprepared,
      enter: unprepared,
      answered: unprepared,
    },
    invoke: async (requester, request) => invoke(requireScope(requester, 'invoke'), request),
    preflight: async (requester) => {
      requireScope(requester, 'invoke');
      return { wouldAdmit: 'pass', firstRefusal: null, layers: [], command: null, asOf: T0 };
    },
    permissions: () => [],
    await: async (requester, request) => (request.commandId === 'absent' ? null : invoke(requester, request)),
    cancel: async (_who, key) => (key.commandId === 'absent' ? null : cancel()),
    async pending(requester, query, page) {
      calls.push('rpc.pending');
      return paged(waits, page, listing(requester, query));
    },
    count: async () => ({ count: waits.length, complete: true, completeness }),
    countByNode: async () => ({ items: [{ nodeId: null, count: waits.length }], completeness }),
    async ofUsers(requester, ids, first) {
      calls.push('rpc.ofUsers');
      const of = (id: string) => waits.filter(({ waiter }) => waiter.userId === id);
      return ids.map((userId) => summed(of(userId), first, listing(requester, { userId })));
    },
    async ofClients(requester, keys, first) {
      calls.push('rpc.ofClients');
      const of = (text: string) => waits.filter(({ waiter }) => clientKeyText(waiter) === text);
      return keys.map((key) => summed(of(clientKeyText(key)), first, listing(requester, key)));
    },
    async ofCommands(_requester, keys) {
      calls.push('rpc.ofCommands');
      return keys.map(({ commandId }) => waits.filter(({ waiter }) => waiter.commandId === commandId));
    },
    alerts: () => createFeed<never>(() => {}).subscription,
  };
}

function history({ streams, messages, spilled }: FakeData, calls: string[]): Core['history'] {
  const listing = (requester: Requester, filter: unknown): Listing<StreamSummary> => ({
    name: 'streams',
    filter,
    requester,
    position: ({ suffix }) => [suffix],
  });
  const ofMessages = (requester: Requester, filter: unknown): Listing<Message> => ({
    name: 'messages',
    filter,
    requester,
    position: ({ id }) => [id],
  });
  const of = (id: string): StreamSummary[] => streams.filter(({ userId }) => userId === id);
  return {
    async streams(requester, userId, prefix, page) {
      calls.push('history.streams');
      const rows = of(userId).filter(({ suffix }) => suffix.startsWith(prefix ?? ''));
      return paged(rows, page, listing(requester, { userId, prefix }));
    },
    ofUsers(requester, ids, first) {
      calls.push('history.ofUsers');
      return ids.map((userId) => summed(of(userId), first, listing(requester, { userId, prefix: null })));
    },
    async messages(requester, { stream, ...query }, page) {
      readScope(requester, stream.slice(0, stream.indexOf('/')));
      const kinds = query.kinds ?? null;
      const rows = messages.filter(
        ({ userId, suffix, kind, at }) =>
          stream === `${userId}/${suffix}` &&
          (kinds === null || kinds.includes(kind)) &&
          at > (query.afterTime ?? -Infinity) &&
          at < (query.beforeTime ?? Infinity),
      );
      return messages.some(({ userId, suffix }) => stream === `${userId}/${suffix}`)
        ? paged(rows, page, ofMessages(requester, { stream, ...query }))
        : null;
    },
    async ofCommand(requester, userId, commandId, page) {
      readScope(requester, userId);
      const rows = messages.filter((row) => row.commandId === commandId);
      return paged(rows, page, ofMessages(requester, { userId, commandId }));
    },
    async manyStreams(keys) {
      calls.push('history.manyStreams');
      return keys.map(({ userId, suffix }) => of(userId).find((row) => row.suffix === suffix) ?? null);
    },
    async manyMessages(_requester, keys) {
      calls.push('history.manyMessages');
      const text = ({ userId, suffix, seq, at }: MessageKey): string => `${userId}/${suffix}/${seq}/${at}`;
      return keys.map((key) => messages.find((row) => text(row) === text(key)) ?? null);
    },
    async payloads(_requester, requested) {
      calls.push(`history.payloads ${requested.map(({ id }) => id).join(' ')}`);
      return requested.map(({ id }) => spilled[id] ?? { state: 'unavailable', text: null });
    },
    raw: unprepared,
    cleanSpill: () => 0,
  };
}

function delivery(data: FakeData, calls: string[], updates: Feed<CommandUpdate>): Core['delivery'] {
  const find = (commandId: string): Command | null => data.commands.find((row) => row.commandId === commandId) ?? null;
  return {
    async command(requester, key) {
      if (requester?.kind === 'user' && requester.userId !== key.userId) return null;
      return find(key.commandId);
    },
    many(_requester, keys) {
      calls.push('delivery.many');
      return keys.map(({ commandId }) => find(commandId));
    },
    result() {
      calls.push('delivery.result');
      return data.result;
    },
    updates: async (_who, key) => (find(key.commandId) ? updates.subscription : null),
    loads: (keys) => keys.map(() => ({ inFlight: 2, queued: 3 })),
    events: () => fail('internal', 'not prepared'),
    nodeLoad: () => ({ inFlight: 2, queued: 3 }),
    summary: unprepared,
    nodes: unprepared,
    tenants: unprepared,
    reservations: unprepared,
    nodesById: unprepared,
    tenantsById: unprepared,
    status: unprepared,
    commands: unprepared,
    disconnectClient: unprepared,
    drainNode: unprepared,
  };
}

/** Rejects a call. Sites and the operator's view of delivery have no fake, because they are tested over a real core. */
const unprepared = async (): Promise<never> => fail('internal', 'not prepared');

/** Returns a sites API without a fake, because sites are tested over a real core. */
function noSites(): Core['sites'] {
  return {
    register: unprepared,
    remove: unprepared,
    list: unprepared,
    get: unprepared,
    sessions: unprepared,
    completeness: unprepared,
    many: unprepared,
    ofUsers: unprepared,
    open: unprepared,
    session: unprepared,
    close: unprepared,
    share: unprepared,
    revoke: unprepared,
    ticket: unprepared,
    redeem: unprepared,
    holder: unprepared,
    listen: unprepared,
    subscribe: unprepared,
    invoke: unprepared,
  };
}

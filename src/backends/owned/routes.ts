/**
 * The table of routes: for each method of each port, whether it runs with the owner of one partition, with all owners,
 * or in this process.
 *
 * A new method does not compile until it has a row here.
 */
import type { Backend, PortMethod, PortName } from '../../core/backend.ts';
import { compareClients, compareQuiet } from '../../core/connections/connection-store.ts';
import { type Busy, type Reconnects, compareReconnects } from '../../core/connections/reconnects.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ExecutionContext, CountedWindow } from '../../core/contexts/context.ts';
import type { EvidenceSource, ObservedSource } from '../../core/completeness.ts';
import { SCAN_BUDGET, comparePositions, type PageRequest, type Scan } from '../../core/page.ts';
import { isRecord } from '../../core/json.ts';
import type { Encodable } from './encoding.ts';
import {
  addCounts,
  addDedup,
  addSummaries,
  addWaits,
  falling,
  findScopes,
  joinLeading,
  joinPages,
  joinPauses,
  joinSamples,
  oncePaused,
  takeTurns,
  type Order,
} from './merging.ts';
import type { Placement } from './placement.ts';

type List = readonly unknown[];
type Gaps = readonly ObservedSource[];

/**
 * The method runs in one partition, which is determined by its arguments. `isFollowed`: the relay asks other processes
 * because of the change before it answers, so the change must be recorded first.
 */
type OneRoute<A extends List> = {
  readonly kind: 'one';
  readonly partition: (place: Placement, ...args: A) => number;
  readonly isFollowed?: true;
};

/**
 * The first argument is a list and the method answers each item of it. It runs once in each partition that an item
 * belongs to.
 */
type EachRoute<A extends List, R> = A extends readonly [readonly (infer Item)[], ...List]
  ? R extends readonly (infer One)[]
    ? { readonly kind: 'each' } & (
        | { readonly partition: (place: Placement, item: Item) => number; readonly source: null }
        | {
            /** The partition of an item. Null: all partitions must answer the item. */
            readonly partition: (place: Placement, item: Item) => number | null;
            readonly source: EvidenceSource;
            readonly merge: (parts: readonly One[], args: A, gaps: Gaps) => One;
          }
      )
    : never
  : never;

/** The index of the argument that is the page request. */
type PageIndex<A extends List> = A extends readonly [PageRequest, ...List]
  ? 0
  : A extends readonly [unknown, PageRequest, ...List]
    ? 1
    : never;

/** The method reads a page, in the order of positions. `partition`: the one partition to read, or null to read all. */
type PageRoute<A extends List, R> =
  R extends Scan<unknown>
    ? {
        readonly kind: 'page';
        readonly source: EvidenceSource;
        readonly pageAt: PageIndex<A>;
        readonly partition: (place: Placement, ...args: A) => number | null;
        readonly order: (...args: A) => Order;
      }
    : never;

/**
 * The method runs in one partition, or in all (`partition` null). `source`: the source that an answer names as missing
 * if an owner does not answer; null if the method must fail then.
 */
type AllRoute<A extends List, R> = {
  readonly kind: 'all';
  readonly source: EvidenceSource | null;
  readonly partition: (place: Placement, ...args: A) => number | null;
  readonly merge: (parts: readonly R[], args: A, gaps: Gaps) => R;
};

/** The method runs only in the partitions of this process. Each process calls it for its own partitions. */
type OwnedRoute<A extends List, R> = {
  readonly kind: 'owned';
  readonly merge: (parts: readonly R[], args: A) => R;
};

/** The answer is computed from the arguments and needs no partition. */
type PureRoute<A extends List, R> = { readonly kind: 'pure'; readonly of: (place: Placement, ...args: A) => R };

/** The method concerns this process only, or contacts other processes by its own means. */
type HereRoute = { readonly kind: 'here' };

/**
 * The routes that a method may have. A method whose arguments or answer cannot be encoded must stay in this process.
 */
type RouteOf<A extends List, R> =
  | ([A, R] extends [Encodable<A>, Encodable<R>]
      ? OneRoute<A> | EachRoute<A, R> | PageRoute<A, R> | AllRoute<A, R>
      : never)
  | OwnedRoute<A, R>
  | PureRoute<A, R>
  | HereRoute;

/** The route of a method. */
type MethodRoute<F> = F extends (...args: infer A) => infer R ? RouteOf<A, Awaited<R>> : never;

/** The routes of ports: one for each method, including optional methods. */
export type RoutesOf<Ports> = {
  readonly [P in keyof Ports]: { readonly [M in keyof Ports[P]]-?: MethodRoute<NonNullable<Ports[P][M]>> };
};
export type AllPorts = { readonly [P in PortName]: Pick<Backend[P], PortMethod<P>> };

const ofUser = (place: Placement, { userId }: { readonly userId: string }): number => place.ofUser(userId);
const ofUserId = (place: Placement, userId: string): number => place.ofUser(userId);
const ofId = (place: Placement, id: string): number => place.ofId(id);
const ofUserOrAll = (place: Placement, userId: string | null): number | null =>
  userId === null ? null : place.ofUser(userId);
const ofFilter = (place: Placement, { userId }: { readonly userId: string | null }): number | null =>
  ofUserOrAll(place, userId);
const ofAll = (): null => null;
const ofPart = (_place: Placement, part: number): number => part;
const ofAudit = (place: Placement): number => place.audit;
const ofRevocations = (place: Placement): number => place.ofText('revocations');
const ofDevices = (place: Placement): number => place.ofText('devices');
const rising = (): Order => comparePositions;

const one = <P>(partition: P) => ({ kind: 'one', partition }) as const;
const followed = <P>(partition: P) => ({ kind: 'one', partition, isFollowed: true }) as const;
const each = <P>(partition: P) => ({ kind: 'each', source: null, partition }) as const;
const pages = <P, I extends 0 | 1>(source: EvidenceSource, pageAt: I, partition: P) =>
  ({ kind: 'page', source, pageAt, partition, order: rising }) as const;
const all = <P, F>(source: EvidenceSource | null, partition: P, merge: F) =>
  ({ kind: 'all', source, partition, merge }) as const;
/** The route of methods that return first pages, each of one user or of all users. */
const firstPages = <Row>(source: EvidenceSource) =>
  ({
    kind: 'each',
    source,
    partition: ofFilter,
    merge: (parts: readonly Scan<Row>[], [, first]: readonly [unknown, number, ...List], gaps: Gaps): Scan<Row> =>
      joinPages(parts, first, gaps),
  }) as const;
const HERE = { kind: 'here' } as const;

const byBacklog = (a: Busy, b: Busy): number => b.commands - a.commands || compareClients(a, b);

/** The routes of all ports. */
export const ROUTES = {
  commands: {
    ...{ admit: one(ofUser), preview: one(ofUser), dispatch: one(ofUser), report: one(ofUser), finish: one(ofUser) },
    ...{ settle: one(ofUser), rebind: one(ofUser), live: one(ofUser), mark: one(ofUser), result: one(ofUser) },
    ...{ get: each(ofUser), loads: each(ofUser) },
  },
  waiters: {
    ...{ attach: one(ofUser), remove: one(ofUser) },
    list: pages('pending_rpcs', 1, ofFilter),
    countByNode: all('pending_rpcs', ofFilter, addWaits),
    ...{ ofUsers: each(ofUserId), ofClients: each(ofUser), ofCommands: each(ofUser) },
  },
  nodes: {
    ...{ attach: HERE, beat: HERE, post: HERE, list: HERE, silent: HERE, get: HERE },
    reportTimes: HERE,
    living: HERE,
    due: { kind: 'owned', merge: (parts, [limit]) => takeTurns(parts, limit) },
  },
  inspector: {
    summary: all('delivery', ofAll, addSummaries),
    scopes: pages('delivery', 0, ofAll),
    getScopes: all(null, ofAll, findScopes),
    // Each process answers for its own partitions, so that a scrape of metrics at one relay asks no other relay.
    reservedScopes: { kind: 'owned', merge: (parts) => parts.flat().slice(0, SCAN_BUDGET) },
    busiest: all('delivery', ofAll, joinLeading(byBacklog)),
    list: {
      ...pages('delivery', 1, ofFilter),
      order: (_filter, page) => (page.order === 'newest' ? falling : comparePositions),
    },
  },
  connections: {
    ...{ connect: one(ofUser), touch: one(ofUser), advertise: one(ofUser), disconnect: one(ofUser) },
    ...{ get: each(ofUser), ofUsers: each(ofUserId), lastSeen: HERE },
    ...{ list: pages('connections', 1, ofFilter), users: pages('connections', 0, ofAll) },
    quietest: all('connections', ofAll, joinLeading<Connection>(compareQuiet)),
  },
  reconnects: {
    ...{ note: one(ofUser), counts: each(ofUser) },
    top: all('connections', ofAll, joinLeading<Reconnects>(compareReconnects)),
  },
  contexts: {
    report: one(ofUser),
    ...{ list: pages('contexts', 1, ofFilter), windows: pages('windows', 1, ofFilter) },
    ...{ lists: firstPages<ExecutionContext>('contexts'), windowLists: firstPages<CountedWindow>('windows') },
    ...{ count: all('contexts', ofFilter, addCounts), windowCount: all('windows', ofFilter, addCounts) },
    ...{ windowsNamed: one(ofUserId), getContexts: each(ofUser), getWindows: each(ofUser) },
  },
  history: {
    ...{ retain: one(ofUser), ingest: one(ofUser) },
    ...{ streams: one(ofUserId), messages: one(ofUserId), ofCommand: one(ofUserId), ofUsers: each(ofUserId) },
    sample: all('messages', (place, stream) => ofUserOrAll(place, stream?.userId ?? null), joinSamples),
    users: pages('streams', 0, ofAll),
  },
  dedup: { stats: all('messages', ofAll, addDedup), backend: HERE },
  sites: {
    ...{ put: one(ofUser), remove: one(ofUser), get: each(ofUser), ofUsers: each(ofUserId) },
    list: pages('sites', 1, ofUserOrAll),
  },
  sessions: {
    prefixOf: { kind: 'pure', of: (place, userId) => place.prefixOf(userId) },
    ...{ open: one(ofUser), list: one(ofUser), get: each(ofId) },
    ...{ close: one(ofId), addGrant: one(ofId), revokeGrant: one(ofId) },
    ...{ findByToken: one(ofId), putTicket: one(ofId), redeemTicket: one(ofId) },
  },
  audit: { head: one(ofAudit), append: one(ofAudit), list: one(ofAudit), lines: one(ofAudit), close: HERE },
  pauses: {
    parts: { kind: 'pure', of: (place, userId) => (userId === null ? place.ofUsers : [place.ofUser(userId)]) },
    ...{ keep: followed(ofPart), lift: followed(ofPart), reach: one(ofPart), covered: one(ofPart) },
    list: all('delivery', ofUserOrAll, joinPauses),
    lapse: { kind: 'owned', merge: (parts) => oncePaused(parts.flat()) },
    deciderOf: HERE,
  },
  tickets: { take: one((place: Placement, ticketHash: string) => place.ofText(ticketHash)) },
  // All revocations are in one partition, so that their numbers grow.
  revocations: { add: followed(ofRevocations), after: one(ofRevocations) },
  // All devices are in one partition, so that each code, key and client id is unique.
  devices: {
    ...{ begin: one(ofDevices), find: one(ofDevices), decide: one(ofDevices), ofKey: one(ofDevices) },
    ...{ get: one(ofDevices), use: one(ofDevices), list: one(ofDevices), rename: one(ofDevices) },
    remove: one(ofDevices),
  },
  bus: { hasSubscribers: HERE, publish: HERE, subscribe: HERE, confirmed: HERE },
} as const satisfies RoutesOf<AllPorts>;

type Kind<P extends PortName, M> = M extends keyof (typeof ROUTES)[P]
  ? (typeof ROUTES)[P][M] extends { readonly kind: infer K }
    ? K
    : never
  : never;
type MethodsOf<P extends PortName, K> = {
  [M in PortMethod<P>]: Kind<P, M> extends K ? M : never;
}[PortMethod<P>];
type PortsWith<K> = {
  readonly [P in PortName as MethodsOf<P, K> extends never ? never : P]: Pick<Backend[P], MethodsOf<P, K>>;
};

/** The stores of one partition: the methods that run in partitions. */
export type PartitionStores = PortsWith<'one' | 'each' | 'page' | 'all' | 'owned'>;
/** The stores that a routed backend creates from the table. */
export type RoutedStores = PortsWith<'one' | 'each' | 'page' | 'all' | 'owned' | 'pure'>;
/** The stores that each process has of its own. */
export type OwnStores = PortsWith<'here'>;

/**
 * A route of any method, as the router uses it. The types of the table guarantee that arguments and answers fit the
 * method.
 */
export type AnyRoute =
  | OneRoute<List>
  | (
      | Extract<EachRoute<[List, ...List], List>, { readonly source: null }>
      | Extract<EachRoute<[List, ...List], List>, { readonly source: EvidenceSource }>
    )
  | (Omit<PageRoute<[unknown, PageRequest, ...List], Scan<unknown>>, 'pageAt'> & { readonly pageAt: 0 | 1 })
  | AllRoute<List, unknown>
  | OwnedRoute<List, unknown>
  | PureRoute<List, unknown>
  | HereRoute;

/** Returns the route of a method; undefined if there is no such method. */
export function routeOf(port: string, method: string): AnyRoute | undefined {
  const routes: Readonly<Record<string, unknown>> = ROUTES;
  const rows = Object.hasOwn(ROUTES, port) ? routes[port] : undefined;
  if (!isRecord(rows) || !Object.hasOwn(rows, method)) return undefined;
  // The types of the route cannot be derived from a method name that is only known at run time.
  return rows[method] as AnyRoute;
}

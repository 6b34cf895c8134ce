/** Core's DeliveryInspector over Redis: lists and counts commands and capacity scopes. Changes no command. */
import type { Command } from '../../core/commands/command.ts';
import { matchesRecord } from '../../core/commands/lookup.ts';
import {
  type CapacityScope,
  type CommandPage,
  type DeliveryFilter,
  type DeliveryInspector,
  type DeliverySummary,
  type ReservedScope,
} from '../../core/commands/stores.ts';
import { hasLabels } from '../../core/connections/labels.ts';
import { busiestOf } from '../../core/connections/reconnects.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import {
  CONNECT_WITHIN_MS,
  DELIVERY_SAMPLE,
  OWN_COMMANDS,
  RESPOND_WITHIN_MS,
  SCANNED_AT_LEAST,
  SCOPE_HOLDERS,
  TERMINAL_MS,
} from '../../core/limits.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { ObservedSource } from '../../core/completeness.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import {
  decodeLive,
  namesAfter,
  READ_BATCH,
  readMatching,
  readNamed,
  readOfLive,
  type CommandName,
  type RecordTest,
} from './commands/get.ts';
import type { RedisParts } from './parts.ts';
import { inByteOrder, partitionsOf, type Store } from './store.ts';
import { listOf, numbersOf, type ReadCommand, type Reply } from './client.ts';

/** Creates core's DeliveryInspector. Its listings are merged over all partitions, in byte order of the names. */
export function createRedisInspector(
  parts: RedisParts,
  connections: InspectorListParts['connections'],
): DeliveryInspector {
  const { store } = parts;
  return {
    summary: () => readSummary(store),
    scopes: (page) => scopes(store, page),
    getScopes: (scopeIds) => getScopes(store, scopeIds),
    async reservedScopes() {
      const scopes = (await reservedScopes(store)).slice(0, SCAN_BUDGET);
      return scopes.map(({ scopeId, reservedCommands, userId }) => ({ scopeId, reservedCommands, userId }));
    },
    busiest: (first) => busiest(store, first),
    list: createInspectorList({ ...parts, connections }),
  };
}

/** Says whether records of ended commands of a user, or of any, were reduced to marks within their window. */
async function gapsOf(
  { store, clock }: Pick<RedisParts, 'store' | 'clock'>,
  { userId, stage }: DeliveryFilter,
): Promise<readonly ObservedSource[]> {
  // Only records of ended commands are reduced, so a listing of live commands is complete.
  if (stage !== null && stage !== 'terminal') return [];
  const part = userId === null ? undefined : store.hash(userId);
  const found = await Promise.all(
    partitionsOf(store, userId).map((partition) =>
      store.read([['HGET', store.key(partition, 'reduced', part), 'until']]),
    ),
  );
  const now = clock.now();
  if (found.flat().every((until) => Number(until ?? 0) <= now)) return [];
  const gap = { source: 'delivery', nodeId: null, observed: 0, limit: null, reason: 'evicted' } as const;
  return [{ ...gap, complete: false, asOf: now }];
}

async function scopes(store: Store, page: PageRequest): Promise<Scan<CapacityScope>> {
  const after = page.after?.[0];
  const from = after === undefined ? '-' : `(${after}`;
  const found = await store.readAll((partition) => [
    ['ZRANGEBYLEX', store.key(partition, 'scopes'), from, '+', 'LIMIT', 0, page.first + 1],
  ]);
  const names = inByteOrder(placesIn(found), ({ scopeId }) => scopeId);
  const shown = await scopesNamed(store, names.slice(0, page.first));
  const rows = shown.map((row) => ({ row, position: [row.scopeId] }));
  const last = rows.at(-1);
  const next = names.length > page.first && last ? last.position : null;
  // A scope that was emptied after its name was read is left out.
  return { rows: rows.filter(({ row }) => row.reservedCommands > 0), next, gaps: [] };
}

type PlacedScope = ReservedScope & { readonly partition: number };

/** Reads the scopes that have reservations: at most SCAN_BUDGET of each partition. */
async function reservedScopes(store: Store): Promise<readonly PlacedScope[]> {
  const names = await store.readAll((partition) => [
    ['ZRANGEBYLEX', store.key(partition, 'scopes'), '-', '+', 'LIMIT', 0, SCAN_BUDGET],
  ]);
  const places = placesIn(names);
  const reserved = await ofEachScope(store, places, (key) => [
    ['ZCARD', key],
    ['ZRANGE', key, 0, 0],
  ]);
  const scopes = places.map(({ scopeId, partition }, i): PlacedScope => {
    const [count, holders] = reserved[i] ?? [];
    const [userId = ''] = String(listOf(holders)[0] ?? '').split('\0');
    return { partition, scopeId, reservedCommands: Number(count), userId };
  });
  return scopes.filter(({ reservedCommands }) => reservedCommands > 0);
}

/** Counts the clients that the reservations name. Reads the scopes with the most reservations first. */
async function busiest(store: Store, first: number): Promise<Awaited<ReturnType<DeliveryInspector['busiest']>>> {
  const scopes = (await reservedScopes(store))
    .map(({ partition, scopeId, reservedCommands: count }) => {
      return { partition, key: store.key(partition, 'reserved', store.hash(scopeId)), count };
    })
    .sort((a, b) => b.count - a.count);
  const names = (await readHolders(store, allot(scopes, SCAN_BUDGET))).flat();
  const complete = sum(scopes.map(({ count }) => count)) <= SCAN_BUDGET;
  return { rows: busiestOf(names.map(keyOfName), first), complete };
}

/** The first names of a scope's reservations: how many of them are read. */
type Allotted = { readonly partition: number; readonly key: string; readonly most: number };

/** Divides a number of names among scopes, in order: each gets as many as it has, until none is left. */
function allot(scopes: readonly (Omit<Allotted, 'most'> & { readonly count: number })[], names: number): Allotted[] {
  let left = names;
  return scopes.flatMap(({ partition, key, count }) => {
    const most = Math.min(count, left);
    left -= most;
    return most > 0 ? [{ partition, key, most }] : [];
  });
}

/** Reads the names of reservations, earliest deadline first in each scope. One list for each partition. */
async function readHolders(store: Store, chosen: readonly Allotted[]): Promise<readonly (readonly string[])[]> {
  const holders = await store.readAll((partition) =>
    chosen.filter((one) => one.partition === partition).map(({ key, most }) => ['ZRANGE', key, 0, most - 1] as const),
  );
  return holders.map((lists) => lists.flatMap((list) => listOf(list).map(String)));
}

async function getScopes(store: Store, scopeIds: readonly string[]): Promise<readonly (CapacityScope | null)[]> {
  const found = await store.readAll((partition) =>
    scopeIds.map((id) => ['ZRANGEBYLEX', store.key(partition, 'scopes'), `[${id}`, `[${id}`] as const),
  );
  const places = placesIn(found);
  const held = new Map((await scopesNamed(store, places)).map((scope) => [scope.scopeId, scope]));
  return scopeIds.map((id) => {
    const scope = held.get(id);
    return scope && scope.reservedCommands > 0 ? scope : null;
  });
}

type ScopePlace = { readonly partition: number; readonly scopeId: string };

/**
 * Returns the place of each scope that the indexes name. `found`: the replies to the reads of the indexes, by
 * partition.
 */
function placesIn(found: readonly (readonly Reply[])[]): readonly ScopePlace[] {
  return found.flatMap((replies, partition) =>
    replies.flatMap((names) => listOf(names).map((name) => ({ partition, scopeId: String(name) }))),
  );
}

/** Reads the scopes in the order given. A scope that was emptied since its name was read has no reservations. */
async function scopesNamed(store: Store, places: readonly ScopePlace[]): Promise<readonly CapacityScope[]> {
  const held = await ofEachScope(store, places, (key) => [
    ['ZCARD', key],
    ['ZRANGE', key, 0, SCOPE_HOLDERS - 1, 'WITHSCORES'],
  ]);
  return places.map(({ scopeId }, i) => {
    const [count, holders] = held[i] ?? [];
    return scopeOf(scopeId, Number(count), listOf(holders));
  });
}

/** Runs two reads on the reservations of each scope, and returns the replies in the order of the scopes. */
async function ofEachScope(
  store: Store,
  places: readonly ScopePlace[],
  readsOf: (key: string) => readonly [ReadCommand, ReadCommand],
): Promise<readonly (readonly Reply[])[]> {
  const replies = await store.readAll((partition) =>
    places
      .filter((one) => one.partition === partition)
      .flatMap(({ scopeId }) => readsOf(store.key(partition, 'reserved', store.hash(scopeId)))),
  );
  const queues = replies.map((ofPartition) => ofPartition.values());
  return places.map(({ partition }) => [...(queues[partition]?.take(2) ?? [])]);
}

function scopeOf(scopeId: string, reservedCommands: number, flat: readonly Reply[]): CapacityScope {
  const holders = [...numbersOf(flat)].map(([name, deadline]) => ({ ...keyOfName(name), deadline }));
  return { scopeId, reservedCommands, oldestDeadline: holders[0]?.deadline ?? null, holders };
}

// Lists commands that match a filter, in the order of names or of admission. Changes no command.

type InspectorListParts = Pick<RedisParts, 'store' | 'clock' | 'retentionMs' | 'idempotencyWindowMs'> & {
  /** Reads the connections of clients as they are now, one answer per key. */
  readonly connections: (keys: readonly ClientKey[]) => MaybePromise<readonly (Connection | null)[]>;
};

/** Creates the listing of commands. Each page reads names from an index, in order, then the records of these names. */
function createInspectorList(parts: InspectorListParts): DeliveryInspector['list'] {
  return async (filter, page) => {
    const [scan, gaps] = await Promise.all([listMatching(parts, filter, page), gapsOf(parts, filter)]);
    return { ...scan, gaps };
  };
}

function listMatching(parts: InspectorListParts, filter: DeliveryFilter, page: CommandPage): Promise<Scan<Command>> {
  const keep: KeepMatching = (commands) => matching(parts, filter, commands);
  if (page.order === 'newest') return listNewest(parts, { filter, page, keep });
  const { userId, clientId, ...others } = filter;
  const test = testOf(filter);
  return fillPage(
    {
      names: (part) => namesAfter(parts.store, filter, part),
      positionOf: (name) => name.split('\0'),
      commands: async (names) => keep(await readMatching(parts, names.map(keyOfName), test)),
      plain: Object.values(others).every((value) => value === null) && (userId !== null || clientId === null),
    },
    page,
  );
}

function keyOfName(name: string): { userId: string; clientId: string; commandId: string } {
  const [userId = '', clientId = '', commandId = ''] = name.split('\0');
  return { userId, clientId, commandId };
}

/** Returns the commands, null for those that do not match. Reads connections only if the filter has labels. */
async function matching(
  { connections }: InspectorListParts,
  filter: DeliveryFilter,
  commands: readonly (Command | null)[],
): Promise<readonly (Command | null)[]> {
  const { labels } = filter;
  const found = commands.map((command) => (command && matchesRecord(filter, command) ? command : null));
  if (labels === null) return found;
  const clients = new Map(found.flatMap((command) => (command ? [[clientKeyText(command), command] as const] : [])));
  const rows = await connections([...clients.values()]);
  const labelled = new Set([...clients.keys()].filter((_, i) => hasLabels(rows[i] ?? null, labels)));
  return found.map((command) => (command && labelled.has(clientKeyText(command)) ? command : null));
}

// Lists commands in the order of admission, latest first. Changes nothing.

/** The length of a hash in a name, in characters. */
const HASH = 22;
/**
 * The longest time from a command's admission to its end, milliseconds. After that, its record is kept for the
 * idempotency window.
 */
const LIFE_MS = CONNECT_WITHIN_MS.max + RESPOND_WITHIN_MS.max + 60_000;

/** A command in the index by admission. `name`: its user's hash, its client's hash and its id as one text. */
type Admitted = { readonly partition: number; readonly name: string; readonly at: number };

type NewestParts = Pick<RedisParts, 'store' | 'clock' | 'retentionMs' | 'idempotencyWindowMs'>;
/** Returns the commands in order, null for those that do not match the filter. */
type KeepMatching = (commands: readonly (Command | null)[]) => Promise<readonly (Command | null)[]>;

type Request = { readonly filter: DeliveryFilter; readonly page: PageRequest; readonly keep: KeepMatching };

/** Reads one page. A position is a time of admission and a name, in whichever way the page was read. */
async function listNewest(parts: NewestParts, request: Request): Promise<Scan<Command>> {
  return (await listFew(parts, request)) ?? listAmongAll(parts, request);
}

/** Reads one page of the commands of a user or client, if these are at most OWN_COMMANDS; else returns null. */
async function listFew(parts: NewestParts, { filter, page, keep }: Request): Promise<Scan<Command> | null> {
  const { userId } = filter;
  if (userId === null) return null;
  const { store } = parts;
  page.reading?.check();
  const names = await namesAfter(store, filter, { first: OWN_COMMANDS + 1, after: null });
  if (names.length > OWN_COMMANDS) return null;
  page.reading?.check();
  page.reading?.countScanned(names.length);
  const found = await keep(await readMatching(parts, names.map(keyOfName), testOf(filter)));
  const [time = '', after = ''] = page.after ?? [];
  const later = found
    .filter((row) => row !== null)
    .map((row) => ({ row, name: store.hash(userId) + store.hash(userId, row.clientId) + row.commandId }))
    .filter(({ row, name }) => {
      return page.after === null || row.admittedAt < Number(time) || (row.admittedAt === Number(time) && name < after);
    })
    .sort((a, b) => b.row.admittedAt - a.row.admittedAt || (a.name < b.name ? 1 : -1));
  const rows = later.slice(0, page.first).map(({ row, name }) => ({ row, position: [String(row.admittedAt), name] }));
  return { rows, next: later.length > rows.length ? (rows.at(-1)?.position ?? null) : null, gaps: [] };
}

function listAmongAll(parts: NewestParts, { filter, page, keep }: Request): Promise<Scan<Command>> {
  const prefix = prefixOf(parts.store, filter);
  const test = testOf(filter);
  return fillPage(
    {
      names: (part) => admittedAfter(parts, filter, part),
      positionOf: ({ at, name }) => [String(at), name],
      async commands(found) {
        const wanted = found.filter(({ name }) => name.startsWith(prefix));
        const kept = await keep(await recordsOf(parts, wanted, test));
        const shown = new Map(wanted.map((one, i) => [one, kept[i] ?? null]));
        return found.map((one) => shown.get(one) ?? null);
      },
      // The index has the commands of all users.
      plain: false,
    },
    page,
  );
}

/** Returns the text with which the names of the wanted commands begin; '' if the filter has no user. */
function prefixOf(store: Store, { userId, clientId }: DeliveryFilter): string {
  if (userId === null) return '';
  return store.hash(userId) + (clientId === null ? '' : store.hash(userId, clientId));
}

/** The length of the time whose admissions one key of the index has, milliseconds (see lib-newest). */
const HOUR_MS = 3_600_000;
/** How far the time of an admission may be ahead of this process's clock, milliseconds. */
const AHEAD_MS = 1_000;

/** Reads the next names of commands, merged over the partitions. Commands that are gone may be among them. */
async function admittedAfter(
  { store, clock, idempotencyWindowMs = TERMINAL_MS }: NewestParts,
  { userId, admittedAfter: after, admittedBefore: before }: DeliveryFilter,
  { first, after: last }: Pick<PageRequest, 'first' | 'after'>,
): Promise<readonly Admitted[]> {
  const now = clock.now();
  const bounds = {
    oldest: Math.max(now - idempotencyWindowMs - LIFE_MS, after === null ? 0 : Math.floor(after) + 1),
    newest: Math.min(last ? Number(last[0]) : now + AHEAD_MS, before === null ? Infinity : Math.ceil(before) - 1),
  };
  const found = await Promise.all(
    partitionsOf(store, userId).map(async (partition) => {
      const names: Admitted[] = [];
      for await (const { name, at } of admittedIn(store, partition, { ...bounds, step: first })) {
        // The names with the same millisecond as the last one are read again.
        if (last && at === Number(last[0]) && name >= (last[1] ?? '')) continue;
        names.push({ partition, name, at });
        if (names.length === first) break;
      }
      return names;
    }),
  );
  const merged = found.flat();
  // Names are ASCII, so this is the order of their bytes.
  merged.sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1));
  return merged.slice(0, first);
}

type Span = { readonly newest: number; readonly oldest: number; readonly step: number };

/** Reads the names of the commands of a partition that were admitted in a span of time, the latest first. */
async function* admittedIn(store: Store, partition: number, { newest, oldest, step }: Span) {
  for (let hour = newest - (newest % HOUR_MS); hour + HOUR_MS > oldest; hour -= HOUR_MS) {
    const index = store.key(partition, 'admitted', String(hour));
    for (let from = 0, more = true; more; from += step) {
      const bounds = [newest, oldest, 'BYSCORE', 'REV', 'LIMIT', from, step, 'WITHSCORES'];
      const [reply] = await store.read([['ZRANGE', index, ...bounds]]);
      const rows = numbersOf(reply);
      for (const [name, at] of rows) yield { name, at };
      more = rows.size === step;
    }
  }
}

/**
 * Reads the records of these commands; null if a record is gone or fails the test, or if its id was admitted again in
 * the meantime.
 */
async function recordsOf(
  parts: NewestParts,
  found: readonly Admitted[],
  test: RecordTest,
): Promise<readonly (Command | null)[]> {
  const records = new Map<Admitted, Command | null>();
  const read = async (partition: number, some: readonly Admitted[]): Promise<void> => {
    const names = some.map(({ name }) => nameOf(name));
    const commands = await readNamed(parts, partition, names, test);
    some.forEach((one, i) => {
      const command = commands[i] ?? null;
      records.set(one, command?.admittedAt === one.at ? command : null);
    });
  };
  await Promise.all([...Map.groupBy(found, ({ partition }) => partition)].map(([p, some]) => read(p, some)));
  return found.map((one) => records.get(one) ?? null);
}

function nameOf(name: string): CommandName {
  return [name.slice(HASH, 2 * HASH), name.slice(2 * HASH), name.slice(0, HASH)];
}

// Counts commands for the summary. Most counts are sums over the reservations of each scope, because no index has the
// totals.

/** The most scopes whose reservations are read in one round trip. */
const SCOPES = 1000;

/** The key of a scope's reservations, and the counts that they give. */
type Reserved = {
  readonly key: string;
  readonly count: number;
  /** How many of its commands are past their deadline. */
  readonly due: number;
  /** The earliest deadline of its commands, epoch milliseconds. */
  readonly first: number;
};
type Sampled = { readonly deadline: number; readonly queuedAt: number | null };
type Counts = {
  readonly now: number;
  readonly tracked: number;
  readonly due: number;
  readonly reserved: readonly (Reserved & { readonly partition: number })[];
};

async function readSummary(store: Store): Promise<DeliverySummary> {
  const counts = await Promise.all(partitionsOf(store).map((partition) => countsOf(store, partition)));
  const now = Math.max(...counts.map((one) => one.now));
  const sample = await sampleOf(
    store,
    counts.flatMap(({ reserved }) => reserved),
  );
  const since = least(sample.flatMap(({ queuedAt }) => (queuedAt === null ? [] : [queuedAt])));
  return {
    trackedCommands: sum(counts.map(({ tracked }) => tracked)),
    dueCommands: sum(counts.map(({ due }) => due)),
    sampledOldestDeadline: least(sample.map(({ deadline }) => deadline)),
    sampledOldestQueuedAgeMs: since === null ? null : Math.max(0, now - since),
    sampleSize: sample.length,
    legacyCommandStreamDepth: null,
    pendingCommandDepth: null,
  };
}

async function countsOf(store: Store, partition: number): Promise<Counts> {
  const [now = 0, ended = 0, due = 0] = listOf(await store.act(partition, 'inspector-summary', [])).map(Number);
  const reserved = await readReserved(store, partition, now);
  return {
    now,
    tracked: ended + sum(reserved.map(({ count }) => count)),
    due: due + sum(reserved.map((scope) => scope.due)),
    reserved: reserved.map((scope) => ({ ...scope, partition })),
  };
}

async function readReserved(store: Store, partition: number, now: number): Promise<readonly Reserved[]> {
  const found: Reserved[] = [];
  const scopes = store.key(partition, 'scopes');
  for (let from = '-'; ;) {
    const [page] = await store.read([['ZRANGEBYLEX', scopes, from, '+', 'LIMIT', 0, SCOPES]]);
    const names = listOf(page).map(String);
    const keys = names.map((scopeId) => store.key(partition, 'reserved', store.hash(scopeId)));
    const replies = await store.read(
      keys.flatMap((key) => [
        ['ZCARD', key],
        ['ZCOUNT', key, '-inf', now],
        ['ZRANGE', key, 0, 0, 'WITHSCORES'],
      ]),
    );
    for (const [i, key] of keys.entries()) {
      const [count, due, first] = replies.slice(3 * i);
      const deadline = listOf(first)[1];
      if (deadline !== undefined) found.push({ key, count: Number(count), due: Number(due), first: Number(deadline) });
    }
    const last = names.at(-1);
    if (names.length < SCOPES || last === undefined) return found;
    from = `(${last}`;
  }
}

/**
 * Reads a sample of commands from the scopes with the earliest deadlines. Returns the deadline of each command and, if
 * the command is queued now, the time at which it was queued.
 */
async function sampleOf(store: Store, reserved: Counts['reserved']): Promise<readonly Sampled[]> {
  const soonest = [...reserved].sort((a, b) => a.first - b.first);
  const holders = await readHolders(store, allot(soonest, DELIVERY_SAMPLE));
  const rows = await store.readAll((partition) =>
    (holders[partition] ?? []).map((name) => readOfLive(store, partition, keyOfName(name))),
  );
  return rows.flat().flatMap((row) => {
    const command = decodeLive(row);
    if (!command) return [];
    return [{ deadline: command.deadline, queuedAt: command.stage === 'queued' ? command.queuedAt : null }];
  });
}

function least(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : numbers.reduce((a, b) => Math.min(a, b));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

// Fills pages of commands: reads their names in parts, and then the records of each part. Changes nothing.

/** The most names that one call reads. Such a call takes about 1 ms, and Redis answers others before the next one. */
export const NAMES = 256;

/** The names of a listing, in its order. */
type NamedListing<N> = {
  /** Reads the next `first` names after a position; fewer if no more follow. */
  readonly names: (page: Pick<PageRequest, 'first' | 'after'>) => Promise<readonly N[]>;
  readonly positionOf: (name: N) => Position;
  /** Reads the commands with these names, at most READ_BATCH; null for those that are gone or do not match. */
  readonly commands: (names: readonly N[]) => Promise<readonly (Command | null)[]>;
  /** Whether every name is of a command that matches, except for those that are gone. */
  readonly plain: boolean;
};

/**
 * Fills one page. At most SCAN_BUDGET names are read, or SCANNED_AT_LEAST once the page's document has scanned enough.
 * No call reads more than NAMES names or READ_BATCH records, and each begins when the one before has been answered.
 */
async function fillPage<N>(listing: NamedListing<N>, page: PageRequest): Promise<Scan<Command>> {
  const { names, positionOf, commands, plain } = listing;
  const { reading } = page;
  const rows: { row: Command; position: Position }[] = [];
  const most = plain ? Math.min(NAMES, page.first + 1) : NAMES;
  let step = plain ? most : SCANNED_AT_LEAST;
  let scanned = 0;
  let last = page.after;
  for (;;) {
    reading?.check();
    const found = await names({ first: step, after: last });
    for (let from = 0; from < found.length; from += READ_BATCH) {
      if (rows.length === page.first) return { rows, next: last, gaps: [] };
      reading?.check();
      const some = found.slice(from, from + READ_BATCH);
      const read = await commands(some);
      if (!plain) reading?.countScanned(some.length);
      for (const [i, name] of some.entries()) {
        if (rows.length === page.first) return { rows, next: last, gaps: [] };
        if (scanned === SCAN_BUDGET) return { rows, next: last, gaps: [], cut: true };
        scanned++;
        last = positionOf(name);
        const row = read[i];
        if (row) rows.push({ row, position: last });
      }
    }
    if (found.length < step) return { rows, next: null, gaps: [] };
    if (!plain && reading?.scannedEnough) return { rows, next: last, gaps: [], cut: true };
    step = most;
  }
}

/**
 * Returns a test that the records of all matching commands pass. Records of others may pass it too, because a text may
 * be in another field, so the caller still compares each command with the filter.
 */
function testOf(filter: DeliveryFilter): RecordTest {
  const { clientId, stage, outcome, outcomes, nodeId, action, contextId, code, clientType } = filter;
  const { caller, callerKind, idOrTrace } = filter;
  const given = [clientId, outcome, nodeId, action, contextId, clientType, caller, callerKind];
  const fields = given.filter((value) => value !== null);
  // A code is inside the JSON of an error, where other characters may be escaped.
  const errors = code !== null && /^[\w.:-]+$/.test(code) ? [`"code":"${code}"`] : [];
  const ends = idOrTrace === null ? [] : [`${idOrTrace}\0`];
  return {
    stage,
    texts: [...fields.map((value) => `\0${value}\0`), ...errors, ...ends],
    oneOf: (outcomes ?? []).map((one) => `\0${one}\0`),
  };
}

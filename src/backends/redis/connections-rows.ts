/**
 * The parts that the stores of connections and contexts share: decodes connection rows and says whether a connection is
 * up at a given time, reads pages and counts from the indexes by name, and computes the revisions of advertised
 * actions.
 */
import {
  connectionStatus,
  type ClientType,
  type Connection,
  type DisconnectCause,
  type Predecessor,
} from '../../core/connections/connection.ts';
import { BoundedMap } from '../../core/collections.ts';
import type { Reported } from '../../core/contexts/context.ts';
import type { ClientKey } from '../../core/ids.ts';
import { DEAD_MS, FORGET_MS } from '../../core/limits.ts';
import type { DocumentReading, Sized } from '../../core/document-reading.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import type { KeyKind } from './keys.ts';
import { inByteOrder, type Store } from './store.ts';
import { fieldsOf, jsonOr, listOf, numberOr, numbersOf, type Fields, type ReadCommand, type Reply } from './client.ts';

/** The fields of a row that say whether and where the link is up, when it was last seen, and when and why it ended. */
type Stamps = Pick<Connection, 'nodeId' | 'lastSeenAt' | 'disconnectedAt' | 'disconnectCause' | 'closeCode'>;

/** Decodes the HASH of a connection; null for an empty one. */
export function decodeConnection(fields: Fields): Connection | null {
  const row = fieldsOf(fields);
  if (!row.has('epoch')) return null;
  const text = (name: string): string => row.get(name) ?? '';
  const actions = decodeActions(text('actions'), row.get('rev'));
  return {
    userId: text('userId'),
    clientId: text('clientId'),
    instanceId: text('instanceId'),
    epoch: Number(text('epoch')),
    clientType: text('clientType') as ClientType,
    host: text('host') === '1',
    places: text('places') === '1',
    linkAttempt: numberOr(row.get('linkAttempt')) ?? undefined,
    metadata: jsonOr(row.get('metadata')),
    actions,
    connectedAt: Number(text('connectedAt')),
    replacedInstanceId: row.get('replacedInstanceId') ?? null,
    replacedAt: numberOr(row.get('replacedAt')),
    predecessors: predecessorsOf(row.get('predecessors')),
    ...stampsOf(row),
  };
}

const NO_PREDECESSORS: readonly Predecessor[] = [];

/** Reads the predecessors that `connections_predecessors` of connections.lua wrote; none if there is no text. */
export function predecessorsOf(text: Reply | undefined): readonly Predecessor[] {
  if (typeof text !== 'string' || text === '') return NO_PREDECESSORS;
  return text.split('\n').map((one) => {
    const [instanceId = '', nodeId = '', replacedAt = '', cause = ''] = one.split('\0');
    return { instanceId, nodeId, replacedAt: Number(replacedAt), cause: cause as DisconnectCause };
  });
}

/**
 * Returns the connection in its state at the time of `leases`, computed from the stamps. It is down if its node's lease
 * is over. Returns null if the connection is due to be forgotten.
 */
export function asOf(
  connection: Connection | null,
  leases: LeaseView,
  stamps: Stamps | null = connection,
): Connection | null {
  const now = stamps && stampsAt(stamps, leases);
  return connection && now && { ...connection, ...now };
}

/**
 * Returns the stamps of a row at this time. If the lease of its node is over, the link was lost when the lease ended,
 * unless it was lost before. Returns null if the row is due to be forgotten.
 */
export function stampsAt(stamps: Stamps, { now, over }: LeaseView): Stamps | null {
  const { nodeId, lastSeenAt } = stamps;
  const silentAt = lastSeenAt + DEAD_MS;
  const lease = over.get(nodeId);
  const leaseAt = lease === undefined ? Infinity : Math.max(lease, lastSeenAt);
  const lostAt = stamps.disconnectedAt ?? Math.min(silentAt, leaseAt);
  if (now >= lostAt + FORGET_MS) return null;
  if (stamps.disconnectedAt !== null || leaseAt >= silentAt) return stamps;
  return { nodeId, lastSeenAt, disconnectedAt: leaseAt, disconnectCause: 'node_lost', closeCode: null };
}

export function stampsOf(row: ReadonlyMap<string, string>): Stamps {
  return {
    nodeId: row.get('nodeId') ?? '',
    lastSeenAt: Number(row.get('lastSeenAt')),
    disconnectedAt: numberOr(row.get('disconnectedAt')),
    disconnectCause: (row.get('disconnectCause') ?? null) as DisconnectCause | null,
    closeCode: numberOr(row.get('closeCode')),
  };
}

// Reads pages and counts of listings (connections, contexts, windows) from the indexes by name, merged over the
// partitions. Each caller says which rows its listing keeps.

/** The facts in a client's row that apply to all contexts and windows that the client reported. */
export type Reporter = Omit<Reported, 'reportedAt'> & { readonly reportsContexts: boolean };

/** The fields of a client's row that `reporterOf` needs, in this order. */
export const REPORTER_FIELDS = [
  'instanceId',
  'clientType',
  'nodeId',
  'lastSeenAt',
  'disconnectedAt',
  'disconnectCause',
  'closeCode',
  'reportsContexts',
] as const;

/** Decodes REPORTER_FIELDS of a client's row. Returns null if there is no row, or the row is due to be forgotten. */
export function reporterOf(key: ClientKey, values: readonly Reply[], leases: LeaseView): Reporter | null {
  const row = new Map<string, string>();
  REPORTER_FIELDS.forEach((name, i) => {
    const value = values[i];
    if (typeof value === 'string') row.set(name, value);
  });
  const stamps = row.has('instanceId') ? stampsAt(stampsOf(row), leases) : null;
  return (
    stamps && {
      ...key,
      clientType: row.get('clientType') as ClientType,
      instanceId: row.get('instanceId') ?? '',
      linkLost: connectionStatus(stamps, leases.now) !== 'connected',
      reportsContexts: row.has('reportsContexts'),
    }
  );
}

/** The most members that a filtered scan reads at once. */
const CHUNK = 1_000;

/** A member of an index by name: its name, split at the NULs; its partition; and the leases there when it was read. */
export type Member = { readonly position: Position; readonly partition: number; readonly leases: LeaseView };

/** A listing over an index by name. */
export type Listing<T> = {
  readonly kind: KeyKind;
  /** The user, or the user and the client, whose rows are listed; empty for all users. */
  readonly prefix: readonly string[];
  readonly partitions: readonly number[];
  /** Whether the listing keeps every row. If so, one read gets a whole page. */
  readonly plain: boolean;
  /**
   * Selects rows by their names; the others are not loaded. `key` names the selection: two listings with the same key,
   * kind and prefix load the same rows. Null: all rows are loaded.
   */
  readonly wanted: { readonly key: string; readonly test: (position: Position) => boolean } | null;
  /** Reads the rows of these members, in the order of the members; null for a row that is gone. */
  readonly load: (members: readonly Member[]) => Promise<readonly (T | null)[]>;
  /** Whether a loaded row belongs to the listing at all; if not, it is treated as absent. Absent: all rows do. */
  readonly present?: (row: T) => boolean;
  /** Whether the listing keeps a row. */
  readonly keep: (row: T) => boolean;
  /** Roughly how many bytes a row takes in memory. */
  readonly bytes: (row: T) => number;
};

/** A listing, and the document on whose behalf its rows are read. The document remembers the rows. */
type Source<T> = { readonly looker: Looker; readonly listing: Listing<T>; readonly reading: DocumentReading };

/** Reads one page, by the same rules as core's `scanSorted`. */
export async function scanPage<T>(source: Source<T>, page: PageRequest): Promise<Scan<T>> {
  const { listing } = source;
  const found: { row: T; position: Position }[] = [];
  const chunk = listing.plain ? page.first + 1 : CHUNK;
  let scanned = 0;
  let last: Position | null = null;
  for await (const members of chunks(source, { after: page.after, chunk })) {
    for (const { position, row } of members) {
      const full = found.length === page.first && row !== null;
      if (full) return { rows: found, next: last, gaps: [] };
      if (scanned === SCAN_BUDGET) return { rows: found, next: last, gaps: [], cut: found.length < page.first };
      scanned++;
      // A full page ends with its last row, even if rows after it were read and left out.
      if (found.length < page.first) last = position;
      if (row !== null && listing.keep(row)) found.push({ row, position });
    }
  }
  return { rows: found, next: null, gaps: [] };
}

/**
 * Counts the rows that the listing keeps. A listing that keeps every row is counted by its index, without reading rows.
 * Of any other listing at most `most` members are read; the count is not complete if there are more.
 */
export async function countRows<T>(
  source: Source<T>,
  most: number,
): Promise<{ readonly count: number; readonly complete: boolean }> {
  const { listing, reading, looker } = source;
  if (listing.plain) {
    reading.check();
    const part = { ...partOf(listing.kind, { prefix: listing.prefix, after: null }, 0), counted: true };
    const looks = await Promise.all(listing.partitions.map((partition) => looker.look(partition, part)));
    return { count: looks.reduce((sum, { count }) => sum + count, 0), complete: true };
  }
  let scanned = 0;
  let count = 0;
  for await (const members of chunks(source, { after: null, chunk: CHUNK })) {
    for (const { row } of members) {
      if (scanned++ === most) return { count, complete: false };
      if (row !== null && listing.keep(row)) count++;
    }
  }
  return { count, complete: true };
}

/** Finds the first rows that the listing keeps, at most `most`. */
export async function firstRows<T>(source: Source<T>, most: number): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const members of chunks(source, { after: null, chunk: CHUNK })) {
    for (const { row } of members) {
      if (row !== null && source.listing.keep(row)) found.push(row);
      if (found.length === most) return found;
    }
  }
  return found;
}

/** Reads all rows of a listing that the listing keeps. For listings that are bounded, such as those of one client. */
export async function allRows<T>(source: Source<T>): Promise<readonly Kept<T>[]> {
  const kept: Kept<T>[] = [];
  for await (const members of chunks(source, { after: null, chunk: CHUNK })) {
    for (const { row, position } of members) if (row !== null && source.listing.keep(row)) kept.push({ row, position });
  }
  return kept;
}

type Kept<T> = { readonly position: Position; readonly row: T };
type Found<T> = { readonly position: Position; readonly row: T | null };
type Reach = { readonly after: Position | null; readonly chunk: number };
type Chunk<T> = { readonly rows: readonly Found<T>[]; readonly last: boolean };

/** Reads a listing chunk by chunk, and each chunk once for a document. Ends when the document is given up. */
async function* chunks<T>(source: Source<T>, { after, chunk }: Reach): AsyncGenerator<readonly Found<T>[]> {
  const { kind, prefix, wanted, present } = source.listing;
  for (let at = after; ;) {
    source.reading.check();
    const place = [kind, prefix.join('\0'), at?.join('\0') ?? '', chunk].join('\n');
    const key = `rows\n${place}\n${wanted?.key ?? ''}`;
    const { rows, last } = await source.reading.once(key, () => readChunk(source, { after: at, chunk }, place));
    yield present ? rows.map((found) => (found.row && !present(found.row) ? { ...found, row: null } : found)) : rows;
    if (last) return;
    at = rows.at(-1)?.position ?? null;
  }
}

/** What a member of an index takes in memory, roughly. */
const MEMBER_BYTES = 200;

async function readChunk<T>(
  { looker, listing, reading }: Source<T>,
  { after, chunk }: Reach,
  place: string,
): Promise<Sized<Chunk<T>>> {
  const { kind, prefix, partitions, wanted, load, bytes } = listing;
  const look = async () => {
    const part = partOf(kind, { prefix, after }, chunk);
    const looks = await Promise.all(partitions.map((partition) => looker.look(partition, part)));
    const merged = mergedMembers(looks, partitions);
    const members = merged.slice(0, chunk);
    const last = merged.length === members.length && looks.every((one) => one.members.length < chunk);
    return { value: { members, last }, bytes: members.length * MEMBER_BYTES };
  };
  const names = wanted ? await reading.once(`names\n${place}`, look) : (await look()).value;
  const asked = wanted ? names.members.filter(({ position }) => wanted.test(position)) : names.members;
  const loaded = await reading.load(asked.length, () => load(asked));
  const rowOf = new Map(asked.map((member, i) => [member, loaded[i] ?? null]));
  const rows = names.members.map((member) => ({ position: member.position, row: rowOf.get(member) ?? null }));
  const size = loaded.reduce((sum, row) => sum + (row ? bytes(row) : 0), rows.length * MEMBER_BYTES);
  return { value: { rows, last: names.last }, bytes: size };
}

type Look = LeaseView & { readonly members: readonly string[] };

/** Merges the members of all partitions, in byte order. */
export function mergedMembers(looks: readonly Look[], partitions: readonly number[]): readonly Member[] {
  const lists = looks.map(({ members, ...leases }, i) =>
    members.map((text) => ({ position: text.split('\0'), partition: partitions[i] ?? 0, leases, text })),
  );
  return lists.length === 1 ? (lists[0] ?? []) : inByteOrder(lists.flat(), ({ text }) => text);
}

// Reads parts of the indexes of connections, contexts and windows. The reads of one tick are sent together.

/**
 * The most rows that one act forgets, and the most such acts that a read waits for. After that many acts the read is
 * answered even if more rows are due to be forgotten. Listings leave these rows out, but counts include them.
 */
const SWEEP_ROWS = 64;
const SWEEPS = 100;
/**
 * The most members that one act returns, and the most parts of indexes that it reads. Redis answers no other request
 * while an act runs.
 */
const MAX_MEMBERS = 4_000;
const MAX_PARTS = 200;

/**
 * A requested part of an index whose members are ordered by the bytes of their names. `min` and `max` are bounds of
 * ZRANGEBYLEX. `limit`: the most members to return. `counted`: whether to count all members of the part.
 */
type Part = {
  readonly kind: KeyKind;
  readonly min: string;
  readonly max: string;
  readonly limit: number;
  readonly counted?: boolean;
};

/** The time of a partition, and the nodes whose lease is over, each with the end of its lease (ms). */
export type LeaseView = { readonly now: number; readonly over: ReadonlyMap<string, number> };
/** A part of an index that was read. `count`: the number of its members; -1 if it was not requested. */
type Looked = LeaseView & { readonly members: readonly string[]; readonly count: number };

export type Looker = ReturnType<typeof createLooker>;

/**
 * Collects the reads that are requested in one tick of the event loop. The reads of one partition take one round trip
 * for parts of indexes, and one for keys.
 */
export function createLooker(store: Store) {
  return {
    /** Forgets the rows that are due to be forgotten, and then reads a part of an index. */
    look: gathered((partition, parts: readonly Part[]) => look(store, partition, parts)),
    read: async (command: ReadCommand): Promise<Reply> => (await store.read([command]))[0] ?? null,
  };
}

type Where = {
  /** The user, or the user and the client, whose members are read; empty for all users. */
  readonly prefix: readonly string[];
  /** The position after which the part begins; null if it begins at the start. */
  readonly after: readonly string[] | null;
};

/** Returns the part of an index whose names begin with `prefix`, after a position. */
export function partOf(kind: KeyKind, { prefix, after }: Where, limit: number): Part {
  const own = prefix.join('\0');
  const start = prefix.length === 0 ? '-' : `[${own}\0`;
  const max = prefix.length === 0 ? '+' : `(${own}\u0001`;
  return { kind, min: after === null ? start : `(${after.join('\0')}`, max, limit };
}

type Waiting<A> = { readonly resolve: (answer: A) => void; readonly reject: (error: unknown) => void };

function gathered<Q, A>(
  run: (partition: number, asked: readonly Q[]) => Promise<readonly A[]>,
): (partition: number, one: Q) => Promise<A> {
  const queues = new Map<number, { readonly asked: Q[]; readonly waiting: Waiting<A>[] }>();
  const flush = (partition: number): void => {
    const { asked, waiting } = queues.get(partition) ?? { asked: [], waiting: [] };
    queues.delete(partition);
    run(partition, asked).then(
      (answers) => answers.forEach((answer, i) => waiting[i]?.resolve(answer)),
      (error: unknown) => waiting.forEach(({ reject }) => reject(error)),
    );
  };
  return (partition, one) => {
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    const queue = queues.get(partition) ?? { asked: [], waiting: [] };
    if (queue.asked.length === 0) setImmediate(() => flush(partition));
    queues.set(partition, queue);
    queue.asked.push(one);
    queue.waiting.push({ resolve, reject });
    return promise;
  };
}

async function look(store: Store, partition: number, parts: readonly Part[]): Promise<readonly Looked[]> {
  const answers = await Promise.all([...piecesOf(parts)].map((piece) => sweep(store, partition, piece)));
  return answers.flat();
}

async function sweep(store: Store, partition: number, parts: readonly Part[]): Promise<readonly Looked[]> {
  const args = parts.flatMap(({ kind, min, max, limit, counted }) => [kind, min, max, limit, counted ? '1' : '']);
  for (let turn = 1; ; turn++) {
    const reply = await store.act(partition, 'connections-sweep', [SWEEP_ROWS, ...args]);
    const [now, more, over, ...found] = listOf(reply);
    if (more === '1' && turn < SWEEPS) continue;
    const leases = leaseViewOf(now, over);
    return found.map((one) => {
      const [members, count] = listOf(one);
      return { ...leases, members: listOf(members).map(String), count: Number(count) };
    });
  }
}

function* piecesOf(parts: readonly Part[]): Generator<readonly Part[]> {
  let piece: Part[] = [];
  let members = 0;
  for (const part of parts) {
    if (piece.length === MAX_PARTS || (piece.length > 0 && members + part.limit > MAX_MEMBERS)) {
      yield piece;
      piece = [];
      members = 0;
    }
    piece.push(part);
    members += part.limit;
  }
  yield piece;
}

/**
 * Decodes the time and the leases that an act returned. `over`: in turn each node whose lease is over, and the end of
 * the lease.
 */
export function leaseViewOf(now: Reply | undefined, over: Reply | undefined): LeaseView {
  return { now: Number(now), over: numbersOf(over) };
}

// Computes the text and the revision of the actions that a client advertises. The revision is a hash, the same for the
// same actions in the same order.

type Actions = Connection['actions'];
type Hasher = Pick<Store, 'hash'>;

/** The revision and the length of a list of actions. The text is not kept, because it may be large. */
type KnownRevision = { readonly revision: string; readonly chars: number };
const knownRevisions = new WeakMap<Actions, KnownRevision>();

/**
 * The lists that were decoded, by revision, as long as a row holds them: clients of the same application advertise the
 * same list, which is decoded and kept once.
 */
const decodedLists = new BoundedMap<string, WeakRef<Actions>>({ most: 1_000, order: 'used' });

function decodeActions(text: string, revision: string | undefined): Actions {
  if (revision === undefined) return JSON.parse(text) as Actions;
  const known = decodedLists.get(revision)?.deref();
  if (known && knownRevisions.get(known)?.chars === text.length) return known;
  const actions = JSON.parse(text) as Actions;
  knownRevisions.set(actions, { revision, chars: text.length });
  decodedLists.set(revision, new WeakRef(actions));
  return actions;
}

export function revisionOf(store: Hasher, actions: Actions): string {
  return (knownRevisions.get(actions) ?? note(store, actions, JSON.stringify(actions))).revision;
}

/** Returns the actions as JSON, and their revision. */
export function advertisementOf(store: Hasher, actions: Actions): readonly [text: string, revision: string] {
  const text = JSON.stringify(actions);
  return [text, (knownRevisions.get(actions) ?? note(store, actions, text)).revision];
}

/** Returns the length of the actions as JSON, in characters. */
export function advertisedChars(store: Hasher, actions: Actions): number {
  return (knownRevisions.get(actions) ?? note(store, actions, JSON.stringify(actions))).chars;
}

function note(store: Hasher, actions: Actions, text: string): KnownRevision {
  const made = { revision: store.hash(text), chars: text.length };
  knownRevisions.set(actions, made);
  return made;
}

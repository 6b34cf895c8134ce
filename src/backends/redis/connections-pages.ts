/**
 * Reads pages and counts of listings (connections, contexts, windows) from the indexes by name, merged over the
 * partitions.
 *
 * Each caller defines which rows its listing contains.
 */
import type { DocumentReading, Sized } from '../../core/document-reading.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import { partOf, type LeaseView, type Looker } from './connections-index.ts';
import type { KeyKind } from './keys.ts';
import { inByteOrder } from './store-partitions.ts';

/** The most members that a filtered scan reads at once. */
const CHUNK = 1_000;

/**
 * A member of an index by name: its name, split at the NULs; its partition; and the leases of the partition at the time
 * of the read.
 */
export type Member = { readonly position: Position; readonly partition: number; readonly leases: LeaseView };

/** A listing over an index by name. */
export type Listing<T> = {
  readonly kind: KeyKind;
  /** The user, or the user and the client, whose rows are listed; empty for all users. */
  readonly prefix: readonly string[];
  readonly partitions: readonly number[];
  /** Whether the listing contains every row of the index. If so, one read returns a whole page. */
  readonly plain: boolean;
  /**
   * Selects rows by their names; other rows are not loaded. `key` identifies the selection: two listings with the same
   * key, kind and prefix load the same rows. Null: all rows are loaded.
   */
  readonly wanted: { readonly key: string; readonly test: (position: Position) => boolean } | null;
  /** Reads the rows of members, in order; null for a row that no longer exists. */
  readonly load: (members: readonly Member[]) => Promise<readonly (T | null)[]>;
  /** Whether a loaded row exists for this listing. If not, it is treated as absent. Default: all rows exist. */
  readonly present?: (row: T) => boolean;
  /** Whether the listing contains a row. */
  readonly keep: (row: T) => boolean;
  /** An estimate of the memory that a row takes, in bytes. */
  readonly bytes: (row: T) => number;
};

/** A listing, with the document whose answer needs it. The document caches the rows. */
type Source<T> = { readonly looker: Looker; readonly listing: Listing<T>; readonly reading: DocumentReading };

/** Reads one page by the same rules as core's `scanSorted`. */
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
      // Once the page is full, `last` stays at its last row, although further rows may be read that do not match.
      if (found.length < page.first) last = position;
      if (row !== null && listing.keep(row)) found.push({ row, position });
    }
  }
  return { rows: found, next: null, gaps: [] };
}

/**
 * Counts the rows of a listing. If the listing contains every row, the index gives the count, and no row is read.
 * Otherwise at most `most` members are read; the count is incomplete if there are more.
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

/** Returns the first rows of a listing, at most `most`. */
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

/** Returns all rows of a listing. Only for listings of bounded size, such as those of one client. */
export async function allRows<T>(source: Source<T>): Promise<readonly ListedRow<T>[]> {
  const kept: ListedRow<T>[] = [];
  for await (const members of chunks(source, { after: null, chunk: CHUNK })) {
    for (const { row, position } of members) if (row !== null && source.listing.keep(row)) kept.push({ row, position });
  }
  return kept;
}

type ListedRow<T> = { readonly position: Position; readonly row: T };
type ScannedRow<T> = { readonly position: Position; readonly row: T | null };
type ChunkRange = { readonly after: Position | null; readonly chunk: number };
type Chunk<T> = { readonly rows: readonly ScannedRow<T>[]; readonly last: boolean };

/** Reads a listing chunk by chunk; each chunk is read once for each document. Throws if the document is cancelled. */
async function* chunks<T>(source: Source<T>, { after, chunk }: ChunkRange): AsyncGenerator<readonly ScannedRow<T>[]> {
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

/** An estimate of the memory that an index member takes, in bytes. */
const MEMBER_BYTES = 200;

async function readChunk<T>(
  { looker, listing, reading }: Source<T>,
  { after, chunk }: ChunkRange,
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

/** Merges the members of several partitions, in byte order. */
export function mergedMembers(looks: readonly Look[], partitions: readonly number[]): readonly Member[] {
  const lists = looks.map(({ members, ...leases }, i) =>
    members.map((text) => ({ position: text.split('\0'), partition: partitions[i] ?? 0, leases, text })),
  );
  return lists.length === 1 ? (lists[0] ?? []) : inByteOrder(lists.flat(), ({ text }) => text);
}

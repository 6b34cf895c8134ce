/**
 * Reads pages and counts of listings (connections, contexts, windows) from the indexes by name, merged over the
 * partitions. Each caller says which rows its listing keeps.
 */
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import type { KeyKind } from '../keys.ts';
import { partOf, type LeaseView, type Looker } from './look.ts';

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
  /** Whether a row with this name may be kept. If not, the row is not loaded. */
  readonly wanted: (position: Position) => boolean;
  /** Reads the rows of these members, in the order of the members; null for a row that is gone. */
  readonly load: (members: readonly Member[]) => Promise<readonly (T | null)[]>;
  /** Whether the listing keeps a row. */
  readonly keep: (row: T) => boolean;
};

/** Reads one page, by the same rules as core's `scanSorted`. */
export async function scanPage<T>(looker: Looker, listing: Listing<T>, page: PageRequest): Promise<Scan<T>> {
  const found: { row: T; position: Position }[] = [];
  const chunk = listing.plain ? page.first + 1 : CHUNK;
  let scanned = 0;
  let last: Position | null = null;
  for await (const members of chunks(looker, listing, { after: page.after, chunk })) {
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
 * Counts the rows that the listing keeps. Reads at most `most` members; the count is not complete if there are more.
 */
export async function countRows<T>(
  looker: Looker,
  listing: Listing<T>,
  most: number,
): Promise<{ readonly count: number; readonly complete: boolean }> {
  let scanned = 0;
  let count = 0;
  for await (const members of chunks(looker, listing, { after: null, chunk: CHUNK })) {
    for (const { row } of members) {
      if (scanned++ === most) return { count, complete: false };
      if (row !== null && listing.keep(row)) count++;
    }
  }
  return { count, complete: true };
}

/** Finds the first rows that the listing keeps, at most `most`. */
export async function firstRows<T>(looker: Looker, listing: Listing<T>, most: number): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const members of chunks(looker, listing, { after: null, chunk: CHUNK })) {
    for (const { row } of members) {
      if (row !== null && listing.keep(row)) found.push(row);
      if (found.length === most) return found;
    }
  }
  return found;
}

type Reading = { readonly after: Position | null; readonly chunk: number };
type Found<T> = { readonly position: Position; readonly row: T | null };

async function* chunks<T>(
  looker: Looker,
  { kind, prefix, partitions, wanted, load }: Listing<T>,
  { after, chunk }: Reading,
): AsyncGenerator<readonly Found<T>[]> {
  for (let at = after; ;) {
    const part = partOf(kind, { prefix, after: at }, chunk);
    const looks = await Promise.all(partitions.map((partition) => looker.look(partition, part)));
    const merged = mergedMembers(looks, partitions);
    const members = merged.slice(0, chunk);
    const asked = members.filter(({ position }) => wanted(position));
    const rows = await load(asked);
    const rowOf = new Map(asked.map((member, i) => [member, rows[i] ?? null]));
    yield members.map((member) => ({ position: member.position, row: rowOf.get(member) ?? null }));
    const all = merged.length === members.length && looks.every((look) => look.members.length < chunk);
    if (all) return;
    at = members.at(-1)?.position ?? null;
  }
}

type Look = LeaseView & { readonly members: readonly string[] };

/** Merges the members of all partitions, in byte order. */
export function mergedMembers(looks: readonly Look[], partitions: readonly number[]): readonly Member[] {
  const lists = looks.map(({ members, ...leases }, i) =>
    members.map((text) => ({ position: text.split('\0'), partition: partitions[i] ?? 0, leases, text })),
  );
  if (lists.length === 1) return lists[0] ?? [];
  return lists
    .flat()
    .map((member) => ({ member, bytes: Buffer.from(member.text) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ member }) => member);
}

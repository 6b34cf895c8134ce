import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import type { KeyKind } from '../keys.ts';
import { partOf, type Looker, type Standing } from './look.ts';

/** Members that a filtered scan looks at in one go. */
const CHUNK = 1_000;

/** A member of an index by name, taken apart, and the partition that it stood in. */
export type Member = { readonly position: Position; readonly partition: number; readonly standing: Standing };

/** A listing over an index by name. */
export type Listing<T> = {
  readonly kind: KeyKind;
  /** None: everyone's; a user's; a user's client's. */
  readonly prefix: readonly string[];
  readonly partitions: readonly number[];
  /** Whether every row is kept: then a page is read with one look. */
  readonly plain: boolean;
  /** Tells by its name alone that a row is not asked for. */
  readonly wanted: (position: Position) => boolean;
  /** The rows of these members in their order, null where there is none any more. */
  readonly load: (members: readonly Member[]) => Promise<readonly (T | null)[]>;
  readonly keep: (row: T) => boolean;
};

/** One page, as core's `scanSorted` fills it. */
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
      // A full page ends with its last row, whatever was passed over behind it.
      if (found.length < page.first) last = position;
      if (row !== null && listing.keep(row)) found.push({ row, position });
    }
  }
  return { rows: found, next: null, gaps: [] };
}

/** How many rows are kept; not complete where more than `most` were there to look at. */
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

/** The first row that is kept, whatever stands before it. */
export async function firstRow<T>(looker: Looker, listing: Listing<T>): Promise<T | null> {
  for await (const members of chunks(looker, listing, { after: null, chunk: CHUNK })) {
    for (const { row } of members) if (row !== null && listing.keep(row)) return row;
  }
  return null;
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

type Look = Standing & { readonly members: readonly string[] };

/** In byte order of the members, as each partition has them. */
export function mergedMembers(looks: readonly Look[], partitions: readonly number[]): readonly Member[] {
  const lists = looks.map(({ members, ...standing }, i) =>
    members.map((text) => ({ position: text.split('\0'), partition: partitions[i] ?? 0, standing, text })),
  );
  if (lists.length === 1) return lists[0] ?? [];
  return lists
    .flat()
    .map((member) => ({ member, bytes: Buffer.from(member.text) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ member }) => member);
}

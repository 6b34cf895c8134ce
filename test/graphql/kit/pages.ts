/** Makes pages and summaries in the form in which core answers them. */
import { subjectOf } from '../../../src/core/auth/principal.ts';
import type { Summary, Requester } from '../../../src/core/core.ts';
import type { EvidenceSource } from '../../../src/core/completeness.ts';
import { Cursors, type PageArgs } from '../../../src/core/cursors.ts';
import { comparePositions, scanSorted, type Page } from '../../../src/core/page.ts';
import { createCrypto } from '../../../src/platform/system.ts';
import { T0 } from './rows.ts';

const cursors = new Cursors(createCrypto('k'.repeat(32)));

/** A listing of rows in order of `position`. */
export type Listing<T> = {
  readonly name: EvidenceSource;
  readonly filter: unknown;
  readonly requester: Requester;
  readonly position: (row: T) => readonly string[];
};

/** Returns a page in the form in which core answers it, cursors included. */
export function paged<T>(
  rows: readonly T[],
  args: PageArgs,
  { name, filter, requester, position }: Listing<T>,
): Page<T> {
  const listing = { name, filter, requester: requester ? subjectOf(requester) : '' };
  const request = cursors.request(listing, args);
  const { after } = request;
  const rest = rows.filter((row) => after === null || comparePositions(position(row), after) > 0);
  const scan = scanSorted(rest, request, position);
  const page = cursors.page(listing, scan, [name, T0], (row) => row);
  const sources = page.completeness.sources.map((source) => ({ ...source, nodeId: 'n1' }));
  return { ...page, completeness: { ...page.completeness, sources } };
}

/** Returns the first page, and the total number of rows. */
export function summed<T>(rows: readonly T[], first: number, listing: Listing<T>): Summary<T> {
  return { ...paged(rows, { first }, listing), total: rows.length };
}

/** Iterates over the pages of any listing. */

/** One page of a listing. */
export type Page<Row = unknown> = { readonly nodes: readonly Row[]; readonly nextCursor: string | null };

/**
 * Yields every page of a listing in order: `pages((after) => admin.users({ after }))`. Each page is requested when the
 * consumer asks for it. Rows that appear or disappear during the iteration may be missed; no row is yielded twice.
 * Throws what `query` throws.
 */
export async function* pages<Listing extends Page>(
  query: (after: string | null) => Promise<Listing>,
): AsyncGenerator<Listing, void, undefined> {
  let after: string | null = null;
  do {
    const page: Listing = await query(after);
    yield page;
    after = page.nextCursor;
  } while (after !== null);
}

/** One page of a listing. */
export type Page<Row = unknown> = { readonly nodes: readonly Row[]; readonly nextCursor: string | null };

/**
 * Every page of a listing in its order, each asked for when the one before was taken: `pages((after) => admin.users({ after }))`. Rows that
 * come and go meanwhile may be missed; none is given twice. Throws what asking throws.
 */
export async function* pages<Listing extends Page>(
  ask: (after: string | null) => Promise<Listing>,
): AsyncGenerator<Listing, void, undefined> {
  let after: string | null = null;
  do {
    const page: Listing = await ask(after);
    yield page;
    after = page.nextCursor;
  } while (after !== null);
}

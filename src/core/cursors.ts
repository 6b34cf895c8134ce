/** Makes and checks signed cursors, and builds pages of listings with them. */
import { requirePrincipal, subjectOf, type Requester } from './auth/principal.ts';
import { BoundedMap } from './collections.ts';
import { observed, completenessOf, type SourceRead } from './completeness.ts';
import { fail, invalid } from './errors.ts';
import { canonicalJson } from './json.ts';
import { PAGE_DEFAULT, PAGE_MAX } from './limits.ts';
import {
  type PageRequest,
  SCAN_BUDGET,
  type Position,
  type Scan,
  type Page,
  type FirstRows,
  type Summary,
  type PageCursors,
} from './page.ts';
import type { Crypto } from './ports.ts';

/** The paging arguments of a request. `first`: 1 to 1000, default 100. `after`: an opaque cursor. */
export type PageArgs = Pick<PageRequest, 'reading'> & {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
};

/** A filter as a request gives it. Members that are absent or null match every row. */
export type GivenFilter<Filter> = { readonly [Name in keyof Filter]?: Filter[Name] | undefined };

/** The listing to which a cursor belongs. A cursor is valid only for the same listing, filter and requester. */
export type Listing = { readonly name: string; readonly filter: unknown; readonly requester: string };

/** Returns a listing as this requester reads it. Throws `unauthenticated` if there is no requester. */
export function listingOf(name: string, requester: Requester, filter: unknown): Listing {
  return { name, filter, requester: subjectOf(requirePrincipal(requester)) };
}

const VERSION = 'c1';
/** The most signed cursors that are cached. They take about a megabyte. */
const REMEMBERED = 2_000;

/**
 * Makes and checks opaque cursors. A cursor consists of a version, a position, and an HMAC over both and the listing.
 * If it was damaged, forged, or made for another listing, filter or requester, reading it throws `invalid_cursor`. Its
 * content is read only after the HMAC was checked.
 */
export class Cursors {
  readonly #crypto: Crypto;
  /** The cached cursors, by the signed text. A page that is read again needs the same end cursor. */
  readonly #sealed = new BoundedMap<string, string>({ most: REMEMBERED });
  /** The end cursor of a first page, by the array of the page's rows, for the requester who read the page last. */
  readonly #ends = new WeakMap<readonly unknown[], { readonly requester: string; readonly cursor: string }>();

  constructor(crypto: Crypto) {
    this.#crypto = crypto;
  }

  request(listing: Listing, args: PageArgs): PageRequest {
    const first = args.first ?? PAGE_DEFAULT;
    if (!Number.isInteger(first) || first < 1 || first > PAGE_MAX) invalid('limit', `expected 1 to ${PAGE_MAX}`);
    const after = args.after === null || args.after === undefined ? null : this.decode(listing, args.after);
    return { first, after, reading: args.reading };
  }

  encode(listing: Listing, position: Position): string {
    return this.#seal(macPrefix(listing), position);
  }

  decode(listing: Listing, cursor: string): Position {
    const [version, body, mac, ...more] = cursor.length > 4096 ? [] : cursor.split('.');
    const known = version === VERSION && body !== undefined && mac !== undefined && more.length === 0;
    if (!known || !this.#crypto.equal(mac, this.#mac(macPrefix(listing), body))) {
      fail('invalid_cursor', 'The cursor does not belong to this listing, filter and requester.');
    }
    return JSON.parse(this.#crypto.fromBase64Url(body) ?? '[]') as Position;
  }

  /** Makes a page from rows that a store returned. `view` converts each row. The pair names the source of the rows. */
  page<T, U = T>(listing: Listing, scan: Scan<T>, [source, asOf]: SourceRead, view: (row: T) => U): Page<U> {
    const own = observed(source, asOf, scan.rows.length, scan.cut ? SCAN_BUDGET : null);
    return {
      nodes: scan.rows.map(({ row }) => view(row)),
      cursors: this.#cursorsOf(listing, scan),
      hasNextPage: scan.next !== null,
      completeness: completenessOf([own, ...scan.gaps]),
    };
  }

  /**
   * Makes a page from the first rows of a listing, like `page`. The page's `nodes` are the given array itself. End
   * cursors are cached by array and requester, so always pass the same array with the same listing name and filter.
   */
  firstPage<T>(
    listing: Listing,
    { total, rows, gaps = [] }: FirstRows<T>,
    [source, asOf]: SourceRead,
    position: (row: T) => Position,
  ): Summary<T> {
    const own = observed(source, asOf, rows.length);
    const last = rows.at(-1);
    return {
      nodes: rows,
      cursors: {
        at: (index) => this.#seal(macPrefix(listing), rows[index] === undefined ? [] : position(rows[index])),
        end: () => (last === undefined ? null : this.#endOf(listing, rows, () => position(last))),
      },
      hasNextPage: last !== undefined && total > rows.length,
      completeness: completenessOf([own, ...gaps]),
      total,
    };
  }

  #endOf(listing: Listing, rows: readonly unknown[], position: () => Position): string {
    const { requester } = listing;
    const known = this.#ends.get(rows);
    if (known?.requester === requester) return known.cursor;
    const cursor = this.#seal(macPrefix(listing), position());
    this.#ends.set(rows, { requester, cursor });
    return cursor;
  }

  #cursorsOf(listing: Listing, { rows, next }: Scan<unknown>): PageCursors {
    let prefix: string | null = null;
    const seal = (position: Position): string => this.#seal((prefix ??= macPrefix(listing)), position);
    const end = next ?? rows.at(-1)?.position;
    return {
      at: (index) => seal(rows[index]?.position ?? []),
      end: () => (end ? seal(end) : null),
    };
  }

  #seal(prefix: string, position: Position): string {
    const text = JSON.stringify(position);
    const known = this.#sealed.get(prefix + text);
    if (known !== undefined) return known;
    const body = this.#crypto.toBase64Url(text);
    const cursor = `${VERSION}.${body}.${this.#mac(prefix, body)}`;
    this.#sealed.set(prefix + text, cursor);
    return cursor;
  }

  #mac(prefix: string, body: string): string {
    return this.#crypto.sign(prefix + body);
  }
}

/** Returns the part of the signed text that comes before the position. */
function macPrefix({ name, requester, filter }: Listing): string {
  return `${VERSION}\n${name}\n${requester}\n${canonicalJson(filter)}\n`;
}

import type { Crypto } from './crypto.ts';
import { fail, invalid } from './errors.ts';
import { canonicalJson } from './json.ts';
import { PAGE_DEFAULT, PAGE_MAX } from './limits.ts';
import type { Completeness, ObservedSource, Page, PageRequest, Position, Scan } from './page.ts';

/** What an asker gives for a page: `first` 1 to 1000 (default 100), `after` an opaque cursor. */
export type PageArgs = { readonly first?: number | null | undefined; readonly after?: string | null | undefined };

/** Which listing a cursor belongs to: it opens only for the same listing, filter and asker. */
export type Listing = { readonly name: string; readonly filter: unknown; readonly asker: string };

const VERSION = 'c1';

/**
 * Opaque cursors: version, position and an HMAC over both with the listing. A cursor that was damaged, made up, or made for another
 * listing, filter or asker is `invalid_cursor`; what it holds is never trusted before the HMAC matched.
 */
export class Cursors {
  readonly #crypto: Crypto;

  constructor(crypto: Crypto) {
    this.#crypto = crypto;
  }

  request(listing: Listing, args: PageArgs): PageRequest {
    const first = args.first ?? PAGE_DEFAULT;
    if (!Number.isInteger(first) || first < 1 || first > PAGE_MAX) invalid('limit', `expected 1 to ${PAGE_MAX}`);
    return { first, after: args.after === null || args.after === undefined ? null : this.decode(listing, args.after) };
  }

  encode(listing: Listing, position: Position): string {
    const body = this.#crypto.toBase64Url(JSON.stringify(position));
    return `${VERSION}.${body}.${this.#mac(listing, body)}`;
  }

  decode(listing: Listing, cursor: string): Position {
    const [version, body, mac, ...more] = cursor.length > 4096 ? [] : cursor.split('.');
    const known = version === VERSION && body !== undefined && mac !== undefined && more.length === 0;
    if (!known || !this.#crypto.equal(mac, this.#mac(listing, body))) {
      fail('invalid_cursor', 'The cursor is not one of this listing, filter and asker.');
    }
    return JSON.parse(this.#crypto.fromBase64Url(body) ?? '[]') as Position;
  }

  /** A store's page as the faces show it. `source` says what was observed. */
  page<T, U = T>(
    listing: Listing,
    scan: Scan<T>,
    source: Omit<ObservedSource, 'complete' | 'observed' | 'limit' | 'reason'>,
    view: (row: T) => U,
  ): Page<U> {
    const cursors = scan.rows.map(({ position }) => this.encode(listing, position));
    const own: ObservedSource = { ...source, complete: true, observed: scan.rows.length, limit: null, reason: null };
    return {
      nodes: scan.rows.map(({ row }) => view(row)),
      cursors,
      hasNextPage: scan.next !== null,
      endCursor: scan.next === null ? (cursors.at(-1) ?? null) : this.encode(listing, scan.next),
      completeness: completenessOf([own, ...scan.gaps]),
    };
  }

  #mac(listing: Listing, body: string): string {
    return this.#crypto.sign(
      `${VERSION}\n${listing.name}\n${listing.asker}\n${canonicalJson(listing.filter)}\n${body}`,
    );
  }
}

export function completenessOf(sources: readonly ObservedSource[]): Completeness {
  return { complete: sources.every(({ complete }) => complete), sources };
}

/**
 * Paging by position, signed cursors, and the completeness of answers. A row's position is its sort tuple, and a page
 * starts after a position, not at an offset. So rows that are added or removed between two pages neither repeat nor
 * hide other rows. Also the reads of one GraphQL document, which are bounded together.
 */
import { requirePrincipal, subjectOf, type Requester } from './auth/principal.ts';
import { BoundedMap } from './collections.ts';
import { CallboardError, fail, invalid } from './errors.ts';
import { canonicalJson } from './json.ts';
import { PAGE_DEFAULT, PAGE_MAX, READING_BYTES, ROWS_LOADED_TOGETHER, SCANNED_TOGETHER } from './limits.ts';
import { thenDo, type MaybePromise } from './maybe-promise.ts';
import type { Clock, Crypto } from './ports.ts';

/** The sort tuple of a row, as texts that are compared one by one by UTF-16 code units. */
export type Position = readonly string[];

export type PageRequest = {
  /** The most rows of the page, 1 to 1000. */
  readonly first: number;
  /** The position after which the page starts; null: it starts at the first row. */
  readonly after: Position | null;
  /**
   * The reads of the document that this page is for. A store that needs several calls for a page checks it before each
   * of them. Absent: the answer is never given up.
   */
  readonly reading?: DocumentReading | undefined;
};

export type IncompleteReason =
  'limit_reached' | 'node_silent' | 'store_unavailable' | 'evicted' | 'not_supported' | 'awaiting_reports';
export type EvidenceSource =
  | ('connections' | 'streams' | 'pending_rpcs' | 'actions' | 'messages' | 'delivery')
  | ('contexts' | 'windows' | 'sites' | 'audit' | 'metrics' | 'revocations');

/** What one source contributed to an answer, and why something is missing. */
export type ObservedSource = {
  readonly source: EvidenceSource;
  /** The node that the source belongs to; null if it belongs to none. */
  readonly nodeId: string | null;
  readonly complete: boolean;
  readonly observed: number;
  readonly limit: number | null;
  readonly reason: IncompleteReason | null;
  /** When the source was read, in epoch milliseconds. */
  readonly asOf: number;
};

/** An answer that is no page and may say what is missing from it. Absent: nothing is. */
export type WithGaps = { readonly gaps?: readonly ObservedSource[] };

export type Completeness = { readonly complete: boolean; readonly sources: readonly ObservedSource[] };

/**
 * One page of rows from a store. `next` is the position where the next page continues; null at the end of the rows. It
 * is the position of the last row that was scanned, which a filter may have skipped. A page may therefore be short or
 * empty although more rows follow.
 */
export type Scan<T> = {
  readonly rows: readonly { readonly row: T; readonly position: Position }[];
  readonly next: Position | null;
  /**
   * The reasons why rows may be missing from this answer, such as silent nodes and evicted rows. Empty if nothing is
   * missing.
   */
  readonly gaps: readonly ObservedSource[];
  /** True if the page ended before it was full because SCAN_BUDGET rows had been read. */
  readonly cut?: boolean;
};

/** The opaque cursors of a page. Each is made on demand, since signing costs more than most rows do. */
type PageCursors = {
  /** Returns the cursor of the row at this index, which must exist. */
  at(index: number): string;
  /**
   * Returns the cursor of the page's end, to be given as `after` for the next page. Null if the page is empty and
   * nothing follows.
   */
  end(): string | null;
};

/** A page of a listing, with its cursors and its completeness. */
export type Page<T> = {
  readonly nodes: readonly T[];
  readonly cursors: PageCursors;
  readonly hasNextPage: boolean;
  readonly completeness: Completeness;
};

export function comparePositions(a: Position, b: Position): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a[i] ?? '';
    const right = b[i] ?? '';
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

/** Returns the earlier one of the ends of two pages that are merged; null if both reach the end of their rows. */
export function nearerEnd(a: Position | null, b: Position | null): Position | null {
  if (a === null || b === null) return a ?? b;
  return comparePositions(a, b) <= 0 ? a : b;
}

/**
 * Writes a number as a text that sorts as the number does, for positions. `value` is 0 to Number.MAX_SAFE_INTEGER; a
 * fraction is dropped.
 */
export function sortable(value: number): string {
  return Math.max(0, Math.floor(value)).toString(36).padStart(11, '0');
}

/** The most rows that a filtered scan may read before it returns with the position that it reached. */
export const SCAN_BUDGET = 10_000;

/**
 * Fills one page from rows that are already sorted. `keep` is the filter. At most SCAN_BUDGET rows are read: if few of
 * many rows match, the page is short and the time is bounded.
 */
export function scanSorted<T>(
  rows: Iterable<T>,
  request: PageRequest,
  position: (row: T) => Position,
  keep: (row: T) => boolean = () => true,
): Scan<T> {
  const found: { row: T; position: Position }[] = [];
  let scanned = 0;
  let last: T | null = null;
  const end = (): Position | null => last && position(last);
  for (const row of rows) {
    if (found.length === request.first) return { rows: found, next: end(), gaps: [] };
    if (scanned === SCAN_BUDGET) return { rows: found, next: end(), gaps: [], cut: true };
    scanned++;
    last = row;
    if (keep(row)) found.push({ row, position: position(row) });
  }
  return { rows: found, next: null, gaps: [] };
}

/** The first rows of a listing, and the number of all its rows. */
export type FirstRows<T> = {
  readonly total: number;
  readonly rows: readonly T[];
  readonly gaps?: readonly ObservedSource[];
};

/** The first page of a listing, with the cursors that the listing itself would give, and the total number of rows. */
export type Summary<T> = Page<T> & { readonly total: number };

// Makes and checks signed cursors, and makes pages of listings with them.

/** The paging arguments of a request: `first` is 1 to 1000 (default 100), `after` an opaque cursor. */
export type PageArgs = Pick<PageRequest, 'reading'> & {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
};

/** A filter as a request gives it. Members that are absent or null match every row. */
export type GivenFilter<Filter> = { readonly [Name in keyof Filter]?: Filter[Name] | undefined };

/** The listing that a cursor belongs to. A cursor is valid only for the same listing, filter and requester. */
export type Listing = { readonly name: string; readonly filter: unknown; readonly requester: string };

/** Returns a listing as this requester reads it. Throws `unauthenticated` if there is no requester. */
export function listingOf(name: string, requester: Requester, filter: unknown): Listing {
  return { name, filter, requester: subjectOf(requirePrincipal(requester)) };
}

const VERSION = 'c1';
/** The most signed cursors that are cached; that many take about a megabyte. */
const REMEMBERED = 2_000;

/**
 * Makes and checks opaque cursors: a version, a position, and an HMAC over both and the listing. A cursor that is
 * damaged, forged, or made for another listing, filter or requester is `invalid_cursor`. Its content is not read before
 * the HMAC matches.
 */
export class Cursors {
  readonly #crypto: Crypto;
  /**
   * The cached cursors, by the text that was signed. A page that is read repeatedly needs the same end cursor each
   * time.
   */
  readonly #sealed = new BoundedMap<string, string>({ most: REMEMBERED });
  /** By the rows of a first page: the latest requester, and the end cursor that was made for that requester. */
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

  /** Makes a page from the scan of a store. The page has `view` of each row. The pair names the source of the rows. */
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
   * Does the same as `page`, for the first rows of a listing. The page's `nodes` are the given array itself. The same
   * array must always be given with the same listing name and filter, because end cursors are cached by array and
   * requester.
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

/** Returns the part of the signed text that precedes the position. */
function macPrefix({ name, requester, filter }: Listing): string {
  return `${VERSION}\n${name}\n${requester}\n${canonicalJson(filter)}\n`;
}

// Describes what the sources of an answer contributed, and what is missing.

/** The source of an answer's rows, and when it was read, in epoch milliseconds. */
type SourceRead = readonly [source: EvidenceSource, asOf: number];

/**
 * Describes a source that belongs to no node. `limit`: the bound at which reading stopped; null: the source was read
 * whole.
 */
export function observed(
  source: EvidenceSource,
  asOf: number,
  rows: number,
  limit: number | null = null,
): ObservedSource {
  const reason = limit === null ? null : 'limit_reached';
  return { source, nodeId: null, complete: limit === null, observed: rows, limit, reason, asOf };
}

/** Describes a source of which nothing was read. */
export function gapOf(
  source: EvidenceSource,
  asOf: number,
  nodeId: string | null,
  reason: IncompleteReason,
): ObservedSource {
  return { source, nodeId, complete: false, observed: 0, limit: null, reason, asOf };
}

export function completenessOf(sources: readonly ObservedSource[]): Completeness {
  return { complete: sources.every(({ complete }) => complete), sources };
}

// Lists the silent nodes, whose rows may be out of date, so that answers can report them as gaps.

const NONE: readonly ObservedSource[] = [];
/**
 * How long the list of silent nodes is cached, in milliseconds: far less than the time after which a node counts as
 * silent.
 */
const CACHE_MS = 250;

/** The part of the port of nodes that tells which nodes are silent. */
type SilentNodes = { silent(): MaybePromise<readonly string[]> };
type CachedNodes = { readonly at: number; nodes: MaybePromise<readonly string[]> };

/** The latest result of each store, or the request that is under way. */
const cache = new WeakMap<SilentNodes, CachedNodes>();

/**
 * Returns the gaps that silent nodes cause in an answer: one source for each silent node, with `observed` 0. `nodeId`
 * selects one node; null: all. Empty while no node is silent. The answer is at most CACHE_MS old. Throws what the store
 * throws.
 */
export function silentSources(
  { backend, clock }: { readonly backend: { readonly nodes: SilentNodes }; readonly clock: Clock },
  source: EvidenceSource,
  nodeId: string | null = null,
): MaybePromise<readonly ObservedSource[]> {
  return thenDo(silentNodes(backend.nodes, clock.now()), (nodes) => {
    if (nodes.length === 0) return NONE;
    const asOf = clock.now();
    return nodes
      .filter((silent) => nodeId === null || silent === nodeId)
      .map((silent) => gapOf(source, asOf, silent, 'node_silent'));
  });
}

function silentNodes(store: SilentNodes, now: number): MaybePromise<readonly string[]> {
  const last = cache.get(store);
  if (last && now >= last.at && now - last.at < CACHE_MS) return last.nodes;
  const found = store.silent();
  const cached: CachedNodes = { at: now, nodes: found };
  cache.set(store, cached);
  if (!(found instanceof Promise)) return found;
  return (cached.nodes = found.then(
    (nodes) => (cached.nodes = nodes),
    (error: unknown) => {
      if (cache.get(store) === cached) cache.delete(store);
      throw error;
    },
  ));
}

/** Adds gaps to those of a store's page. */
export function withGaps<T>(scan: Scan<T>, gaps: readonly ObservedSource[]): Scan<T> {
  return gaps.length === 0 ? scan : { ...scan, gaps: [...scan.gaps, ...gaps] };
}

// The reads of one GraphQL document from a store: remembers what was read for other fields of the document, bounds the
// loads in progress, and refuses further reads once no requester waits for the answer.

/** A value that was read, and roughly how many bytes it takes in memory. */
export type Sized<T> = { readonly value: T; readonly bytes: number };

/** The part of an AbortSignal that a read needs. */
export type GivenUp = { readonly aborted: boolean };

/**
 * The reads of one document, or of one event of a subscription. A store remembers here what it read, so that other
 * fields, aliases and pages of the same document do not read it again. At most READING_BYTES are remembered; what
 * exceeds them is read again. Never shared between requesters or documents.
 */
export class DocumentReading {
  readonly #signal: GivenUp | undefined;
  // Both are created when a store uses them: the memory backend never does.
  #loads: Loads | null;
  #known: Map<string, Promise<unknown>> | null = null;
  #bytes = 0;
  #scanned = 0;
  #ended = false;

  /** `signal` is aborted when the requester hangs up; absent: the reader never hangs up. */
  constructor(signal?: GivenUp, loads: Loads | null = null) {
    this.#signal = signal;
    this.#loads = loads;
  }

  /** Whether no requester waits for the answer any more. */
  get aborted(): boolean {
    return this.#ended || this.#signal?.aborted === true;
  }

  /** Throws `store_unavailable` if no requester waits for the answer any more. Stores call it before each read. */
  check(): void {
    if (this.aborted) throw new CallboardError('store_unavailable', 'The answer is no longer awaited.');
  }

  /** Returns a reading that ends with this one and shares its bound of loads, but has a memory of its own. */
  unremembered(): DocumentReading {
    return new DocumentReading(this, (this.#loads ??= new Loads()));
  }

  /**
   * Calls `load`, which reads about `rows` rows of the store. All loads in progress together have at most
   * ROWS_LOADED_TOGETHER rows, so that not too many answers are decoded in one turn of the event loop. A load of more
   * rows runs alone. Loads of few rows begin in the tick of their call, and so share a round trip.
   */
  load<T>(rows: number, load: () => Promise<T>): Promise<T> {
    return (this.#loads ??= new Loads()).run(rows, () => {
      this.check();
      return load();
    });
  }

  /** Counts rows that a filter of the document scans where each row is dear, as records of commands are over Redis. */
  countScanned(rows: number): void {
    this.#scanned += rows;
  }

  /** Whether the filters of the document have scanned so many dear rows that its pages must end. */
  get scannedEnough(): boolean {
    return this.#scanned >= SCANNED_TOGETHER;
  }

  /** Ends the reading: from now on `check` throws. Called when the time of the document is over. */
  end(): void {
    this.#ended = true;
    this.forget();
  }

  /**
   * Returns what `read` returned for this key before. Otherwise reads it, and remembers it if there is room. A read
   * that fails is not remembered. Reads that begin before the first one is done share its result.
   */
  once<T>(key: string, read: () => Promise<Sized<T>>): Promise<T> {
    const known = (this.#known ??= new Map());
    const before = known.get(key);
    // The key names the kind of the value, so a key always has values of one type.
    if (before) return before as Promise<T>;
    const found = read().then(
      ({ value, bytes }) => {
        if (this.#known === known && this.#bytes + bytes <= READING_BYTES) this.#bytes += bytes;
        else known.delete(key);
        return value;
      },
      (error: unknown) => {
        known.delete(key);
        throw error;
      },
    );
    known.set(key, found);
    return found;
  }

  /** Forgets everything, so that the next event of a subscription reads anew. */
  forget(): void {
    this.#known = null;
    this.#bytes = 0;
    this.#scanned = 0;
  }
}

/** The loads of one document that are in progress, and those that wait for them. */
class Loads {
  #rows = 0;
  #waiting: (() => void)[] = [];

  async run<T>(rows: number, load: () => Promise<T>): Promise<T> {
    while (this.#rows > 0 && this.#rows + rows > ROWS_LOADED_TOGETHER)
      await new Promise<void>((go) => this.#waiting.push(go));
    this.#rows += rows;
    try {
      return await load();
    } finally {
      this.#rows -= rows;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const go of waiting) go();
    }
  }
}

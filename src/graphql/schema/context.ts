/**
 * The context of one GraphQL operation: its requester, its loaders by key and of payloads, and the budget of bytes of
 * its answer. Also how a subscription field declares that requesters may share one execution.
 */
import DataLoader from 'dataloader';
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import type { Principal } from '../../core/auth/principal.ts';
import { ChurnMap } from '../../core/collections.ts';
import type { CallerSide, Core, HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import { streamKey, type Message, type ShownPayload } from '../../core/history/message.ts';
import { canonicalJson } from '../../core/json.ts';
import { ANSWER_SPILL_BYTES, ANSWER_BYTES, ANSWER_PAGE_BYTES, ANSWER_ROW_BYTES } from '../../core/limits.ts';
import type { SharedSubscription } from '../../core/live.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { completenessOf, type Completeness } from '../../core/completeness.ts';
import type { PageArgs } from '../../core/cursors.ts';
import { DocumentReading } from '../../core/document-reading.ts';
import type { Page } from '../../core/page.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import type { RequestNotes } from '../../web/request-notes.ts';

export type ContextOptions = {
  readonly core: Core;
  /** The requester; null if the request had no token. */
  readonly requester: Principal | null;
  /** Aborted when the caller hangs up. That ends the caller's waits, never its commands. */
  readonly signal?: HangUp | undefined;
  /** The reading that remembers what the operation reads; absent: the context creates one. */
  readonly reading?: DocumentReading | undefined;
  /** The names of the fields that the operation may select; absent: not known. */
  readonly asks?: Asks | undefined;
  /** The context of the subscription, for the context of one of its events: both have the same audited reads. */
  readonly subscription?: Context | undefined;
  /** Receives the admission and the progress of the command that the operation waits for. */
  readonly updates?: CallUpdates | undefined;
  /** Notes for the access log; absent if the operation has no access log line of its own. */
  readonly notes?: RequestNotes | undefined;
  /** The trace context of the request; commands that the request admits belong to that trace. */
  readonly trace?: TraceContext | undefined;
};

export type CallUpdates = Required<Pick<CallerSide, 'onAdmitted' | 'onProgress'>>;

export function createContext(options: ContextOptions): Context {
  return new Context(options);
}

/**
 * The context of one request's resolvers. Never shared between requests: the loaders cache what this requester may see.
 */
export class Context {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal: HangUp | undefined;
  /** What this operation has read of the store, remembered until the next event of a subscription. */
  readonly reading: DocumentReading;
  readonly updates: CallUpdates | undefined;
  readonly notes: RequestNotes | undefined;
  readonly trace: TraceContext | undefined;
  readonly #asks: Asks;
  readonly #subscription: Context | undefined;
  #payloadReads: PayloadReads | null = null;
  #loaders: Forgets[] | null = null;
  #budget: AnswerBudget | null = null;

  constructor(options: ContextOptions) {
    const { core, requester, signal, reading = new DocumentReading(), updates, notes, trace, asks = null } = options;
    this.#asks = asks;
    this.#subscription = options.subscription;
    this.core = core;
    this.requester = requester;
    this.signal = signal;
    this.reading = reading;
    this.updates = updates;
    this.notes = notes;
    this.trace = trace;
  }

  /** Created when they are used: few requests read payloads. */
  get payloadReads(): PayloadReads {
    return (this.#payloadReads ??= this.#subscription?.payloadReads ?? new PayloadReads(this));
  }

  get readPayload(): ReadPayload {
    return this.payloadReads.read;
  }

  /** The bytes that the lists of this answer may still hold. */
  get budget(): AnswerBudget {
    return (this.#budget ??= new AnswerBudget(this.#asks));
  }

  /** Resets the budget, for an operation that is executed again from its start. */
  restart(): void {
    this.#budget?.restart();
  }

  /** Returns the loader with this number, created on first use: most requests need few of them. */
  loader(number: number, create: (context: Context) => Forgets): Forgets {
    return ((this.#loaders ??= [])[number] ??= create(this));
  }

  /** Forgets what was loaded and read, so that no event of a subscription shows values of an earlier one. */
  forget(): void {
    this.#loaders?.forEach((loader) => loader.forget());
    this.reading.forget();
  }
}

/**
 * Must have completed before payloads of `subject` are shown. For an administrator, it writes one audit row per request
 * and subject; it throws `audit_unavailable`, and `forbidden` if administrators may not read payloads here. For any
 * other requester it does nothing: access to own payloads is not audited.
 */
type ReadPayload = (subject: AuditSubject) => MaybePromise<void>;

/** The audited reads of one request, however many fields or events of it show payloads of one subject. */
class PayloadReads {
  readonly #context: Context;
  readonly #rows = new Map<string, MaybePromise<void>>();

  constructor(context: Context) {
    this.#context = context;
  }

  readonly read: ReadPayload = (subject) => {
    const { core, requester, notes } = this.#context;
    if (requester?.kind !== 'admin') return;
    const key = canonicalJson(subject);
    if (this.#rows.has(key)) return this.#rows.get(key);
    return this.#add(key, core.reveals.read(requester, subject, notes?.requestId ?? null));
  };

  /** Writes the audit row of reading the payloads of `subject` for a reason, which the later reads then have. */
  readFor(reason: string, subject: AuditSubject): MaybePromise<void> {
    const { core, requester, notes } = this.#context;
    const row = core.reveals.readFor(requester, { subject, reason, requestId: notes?.requestId ?? null });
    return this.#add(canonicalJson(subject), row);
  }

  /** Whether the requester may read payloads of `subject` here. */
  mayRead(subject: AuditSubject): boolean {
    const { core, requester } = this.#context;
    return core.reveals.shows(requester) || this.#rows.has(canonicalJson(subject));
  }

  #add(key: string, row: MaybePromise<void>): MaybePromise<void> {
    this.#rows.set(key, row);
    return row;
  }
}

// Loads nested fields in batches: all parents of one tick cause one call of core. In direct mode each key is loaded
// immediately and alone, which costs less because all state is in memory. Values are cached in the context.

type Forgets = { forget(): void };
type Load<K, V> = Forgets & { readonly load: (key: K) => MaybePromise<V> };
/** Reads the values of several keys, in the order of the keys. */
type Batch<K, V> = (keys: readonly K[]) => MaybePromise<readonly V[]>;

let loaders = 0;

/**
 * Creates a function that returns a context's own instance of one loader. In every context, the instance has the same
 * number.
 */
function loaderOf<L extends Forgets>(create: (context: Context) => L): (context: Context) => L {
  const number = loaders++;
  // The cast is safe: no other loader has this number.
  return (context) => context.loader(number, create) as L;
}

/** Creates a function that loads values by key. `keyOf` returns a key as text. */
export function loadBy<K, V>(
  keyOf: (key: K) => string,
  batch: (context: Context, keys: readonly K[]) => MaybePromise<readonly V[]>,
): (context: Context, key: K) => MaybePromise<V> {
  const own = loaderOf((context) => createLoad(context, keyOf, (keys) => batch(context, keys)));
  return (context, key) => own(context).load(key);
}

/** Reads the first pages of several keys. */
type FirstPages<K, V> = (context: Context, keys: readonly K[], first: number) => MaybePromise<readonly V[]>;

/**
 * Creates a function that loads first pages by key, in one batch per page size, because a page of one size cannot serve
 * a request for another size.
 */
export function loadFirstBy<K, V>(
  keyOf: (key: K) => string,
  batch: FirstPages<K, V>,
): (context: Context, key: K, first: number) => MaybePromise<V> {
  const own = loaderOf((context) =>
    bySize((first) => createLoad(context, keyOf, (keys) => batch(context, keys, first))),
  );
  return (context, key, first) => own(context).load(key, first);
}

/** Creates functions that load pages by key: first pages in batches, and every other page with `later`. */
export function loadPagesBy<K, V, P>(
  keyOf: (key: K) => string,
  batch: FirstPages<K, V>,
  later: (context: Context, key: K, page: PageArgs) => MaybePromise<P>,
) {
  const first = loadFirstBy(keyOf, batch);
  return {
    first,
    page: (context: Context, key: K, page: PageArgs & { readonly first: number }): MaybePromise<V | P> =>
      page.after ? later(context, key, page) : first(context, key, page.first),
  };
}

function bySize<K, V>(create: (size: number) => Load<K, V>) {
  const sizes = new ChurnMap<number, Load<K, V>>();
  return {
    load(key: K, size: number): MaybePromise<V> {
      const known = sizes.get(size);
      if (known) return known.load(key);
      const loader = create(size);
      sizes.set(size, loader);
      return loader.load(key);
    },
    forget: () => sizes.clear(),
  };
}

function createLoad<K, V>({ core }: Context, keyOf: (key: K) => string, batch: Batch<K, V>): Load<K, V> {
  return core.mode === 'direct' ? loadAtOnce(keyOf, batch) : loadInBatches(keyOf, batch);
}

function loadInBatches<K, V>(keyOf: (key: K) => string, batch: Batch<K, V>): Load<K, V> {
  const loader = new DataLoader<K, V, string>(async (keys) => batch(keys), { cacheKeyFn: keyOf });
  return { load: (key) => loader.load(key), forget: () => void loader.clearAll() };
}

function loadAtOnce<K, V>(keyOf: (key: K) => string, batch: Batch<K, V>): Load<K, V> {
  const loaded = new ChurnMap<string, MaybePromise<V>>();
  return {
    load(key) {
      const text = keyOf(key);
      const known = loaded.get(text);
      if (known !== undefined) return known;
      const value = thenDo(batch([key]), onlyOne);
      loaded.set(text, value);
      return value;
    },
    forget: () => loaded.clear(),
  };
}

function onlyOne<V>(values: readonly V[]): V {
  const [value] = values;
  if (value === undefined) throw new CallboardError('internal', 'A batch load of one key returned no value.');
  return value;
}

// Loads payloads of messages for one request, within the bytes that one answer may fetch.

const payloadsOf = loaderOf(createPayloads);

/** Loads the payload of a message. The resolver decides whether the requester asked for it. */
export function loadPayload(context: Context, message: Message): MaybePromise<ShownPayload> {
  return payloadsOf(context).load(message);
}

const NOT_SHOWN: ShownPayload = { state: 'redacted', text: null };

/**
 * Loads payloads for one request; each is looked up once, however many fields read it. Large payloads are fetched up to
 * ANSWER_SPILL_BYTES per request. Large payloads beyond that stay redacted, because otherwise one page could fill the
 * relay's memory.
 */
function createPayloads({ core, requester }: Context): Load<Message, ShownPayload> {
  const loader = loadInBatches(keyOf, (messages: readonly Message[]) => core.history.payloads(requester, messages));
  const decided = new Set<string>();
  let left = ANSWER_SPILL_BYTES;
  const mayFetch = (key: string, bytes: number): boolean => {
    if (decided.has(key)) return true;
    if (bytes > left) return false;
    left -= bytes;
    decided.add(key);
    return true;
  };
  return {
    load(message) {
      const { payload, spill } = message;
      if (spill === null) return { state: payload === null ? 'none' : 'included', text: payload };
      return mayFetch(keyOf(message), spill.bytes) ? loader.load(message) : NOT_SHOWN;
    },
    forget() {
      loader.forget();
      decided.clear();
      left = ANSWER_SPILL_BYTES;
    },
  };
}

function keyOf({ userId, suffix, seq }: Message): string {
  return `${streamKey(userId, suffix)}/${seq}`;
}

// Defines how subscriptions declare that several requesters may share one execution.

/**
 * The extension `share` of a subscription field whose events many requesters may receive from one execution. It
 * authorises each requester as `subscribe` does, and throws what `subscribe` would throw. Each event is then executed
 * once, with a context that has no requester.
 *
 * Only for fields that carry live events alone: a field that begins with the current state has no `share`, because a
 * requester who joins later would miss that state. The types of the field carry the extension `shareable`: each of
 * their fields is resolved synchronously from the event alone. A field to which this does not apply carries
 * `perViewer`.
 */
export type Share<Args, By = Context> = (args: Args, context: By) => MaybePromise<SharedSubscription<unknown>>;

/** The names of the fields that an operation may select; null if unknown, which counts as all fields. */
type Asks = ReadonlySet<string> | null;

/**
 * The part of a row that may be large: the fields that show it, and the size of those fields that an operation selects.
 */
export type RowSize<Row> = {
  readonly fields: readonly string[];
  /**
   * The approximate size of the selected fields as JSON, in bytes. Computed from known lengths, because it is called
   * for every row, up to twice for one answer.
   */
  readonly bytes: (row: Row, asks: (field: string) => boolean) => number;
};

/**
 * Returns the bytes that one list may take: a page while more than three quarters of the whole budget are left. After
 * that, a list may take an eighth of the rest, so every list leaves something for later lists.
 */
function roomOf(left: number): number {
  return left > (ANSWER_BYTES * 3) / 4 ? ANSWER_PAGE_BYTES : left / 8;
}

/**
 * The bytes that all lists of one answer may hold together. A list that reaches the bound of a page or the end of the
 * budget ends early, and its completeness says so. While any budget is left, a list has at least one row, so that
 * paging makes progress; afterwards lists are empty.
 */
export class AnswerBudget {
  readonly #asks: Asks;
  readonly #parts = new Map<object, Part>();
  #left = ANSWER_BYTES;

  constructor(asks: Asks) {
    this.#asks = asks;
  }

  /**
   * Returns the page, or the first rows of it that fit into the budget. Repeated calls for the same page return the
   * same rows.
   */
  page<Row>(page: Page<Row>, size: RowSize<Row> | null): Page<Row> {
    const { kept } = this.#partOf(page, page.nodes, size);
    if (kept === page.nodes.length) return page;
    const { cursors } = page;
    return {
      nodes: page.nodes.slice(0, kept),
      cursors: { at: cursors.at, end: () => (kept === 0 ? null : cursors.at(kept - 1)) },
      hasNextPage: true,
      completeness: cutShort(page.completeness, kept),
    };
  }

  /**
   * Does the same as `page`, for a field whose rows are written into the text of the answer at each call. An answer may
   * have one page several times, so each repeated call takes the page's bytes from the budget again.
   */
  written<Row>(page: Page<Row>, size: RowSize<Row> | null): Page<Row> {
    this.#write(this.#partOf(page, page.nodes, size));
    return this.page(page, size);
  }

  /** Does the same as `page`, for a list without pages. */
  list<Row, List extends { readonly items: readonly Row[]; readonly completeness: Completeness }>(
    list: List,
    size: RowSize<Row>,
  ): Pick<List, 'items' | 'completeness'> {
    const { kept } = this.#partOf(list, list.items, size);
    if (kept === list.items.length) return list;
    return { items: list.items.slice(0, kept), completeness: cutShort(list.completeness, kept) };
  }

  /** Does the same as `written`, for a list without pages. */
  items<Row>(list: { readonly items: readonly Row[]; readonly completeness: Completeness }, size: RowSize<Row>) {
    this.#write(this.#partOf(list, list.items, size));
    return this.list(list, size).items;
  }

  /**
   * Counts a single row. Throws `too_complex` if no budget is left, because a single row cannot end early as a list
   * can.
   */
  row<Row>(row: Row, size: RowSize<Row>): Row {
    this.#spend(this.#bytesOf(row, this.#sizeOf(size)));
    return row;
  }

  /** Resets the budget, for an operation that is executed again from its start. */
  restart(): void {
    this.#left = ANSWER_BYTES;
    this.#parts.clear();
  }

  #partOf<Row>(key: object, rows: readonly Row[], given: RowSize<Row> | null): Part {
    const known = this.#parts.get(key);
    if (known) return known;
    const size = given && this.#sizeOf(given);
    const room = roomOf(this.#left);
    const part = room <= 0 ? { ...NOTHING } : size ? this.#fit(rows, size, room) : fitPlain(rows.length, room);
    this.#left -= part.bytes;
    this.#parts.set(key, part);
    return part;
  }

  #fit<Row>(rows: readonly Row[], size: RowSize<Row>, room: number): Part {
    const whole = rows.length < MIN_MEASURED_ROWS ? Infinity : this.#wholeBytes(rows, size);
    if (whole <= room) return { kept: rows.length, bytes: whole, written: false };
    let bytes = 0;
    let kept = 0;
    for (const row of rows) {
      const more = this.#bytesOf(row, size);
      if (kept > 0 && bytes + more > room) break;
      bytes += more;
      kept++;
    }
    return { kept, bytes, written: false };
  }

  /** Returns the bytes of all rows. They are remembered for a list that several answers show with the same fields. */
  #wholeBytes<Row>(rows: readonly Row[], size: RowSize<Row>): number {
    const before = measured.get(rows);
    if (before && before.size === size && before.asks === this.#asks) return before.bytes;
    const bytes = rows.reduce((sum, row) => sum + this.#bytesOf(row, size), 0);
    measured.set(rows, { size, asks: this.#asks, bytes });
    return bytes;
  }

  #write(part: Part): void {
    if (part.written && part.bytes > 0) this.#spend(part.bytes);
    part.written = true;
  }

  #spend(bytes: number): void {
    if (this.#left <= 0) {
      throw new CallboardError('too_complex', `The answer exceeds ${ANSWER_BYTES} bytes. Ask for shorter lists.`);
    }
    this.#left -= bytes;
  }

  #bytesOf<Row>(row: Row, size: RowSize<Row> | null): number {
    return ANSWER_ROW_BYTES + (size ? size.bytes(row, this.#isAsked) : 0);
  }

  /** Returns the given size, or null if the operation selects no field that may be large. */
  #sizeOf<Row>(size: RowSize<Row>): RowSize<Row> | null {
    return size.fields.some(this.#isAsked) ? size : null;
  }

  readonly #isAsked = (field: string): boolean => this.#asks === null || this.#asks.has(field);
}

/** The number of rows from which on the bytes of a list are remembered. */
const MIN_MEASURED_ROWS = 8;
/** The bytes of whole lists, as they were last measured. A list that was handed out is never modified. */
const measured = new WeakMap<object, { readonly size: object; readonly asks: Asks; readonly bytes: number }>();

/**
 * How many rows of a list are shown, and the bytes of these rows. The bytes are deducted from the budget once, before
 * the rows are written.
 */
type Part = { readonly kept: number; readonly bytes: number; written: boolean };
const NOTHING: Part = { kept: 0, bytes: 0, written: false };

function fitPlain(rows: number, room: number): Part {
  const kept = Math.min(rows, Math.max(1, Math.floor(room / ANSWER_ROW_BYTES)));
  return { kept, bytes: kept * ANSWER_ROW_BYTES, written: false };
}

function cutShort({ sources }: Completeness, kept: number): Completeness {
  const [own, ...gaps] = sources;
  if (!own) return { complete: false, sources };
  return completenessOf([{ ...own, complete: false, observed: kept, limit: kept, reason: 'limit_reached' }, ...gaps]);
}

/**
 * The context of one GraphQL operation: its requester, its loaders by key and of payloads, and the budget of bytes of
 * its answer. Also how a subscription field declares that requesters may share one execution.
 */
import DataLoader from 'dataloader';
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import type { Principal } from '../../core/auth/principal.ts';
import { ChurnMap } from '../../core/collections.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import { streamKey, type Message, type ShownPayload } from '../../core/history/message.ts';
import { canonicalJson } from '../../core/json.ts';
import { ANSWER_SPILL_BYTES } from '../../core/limits.ts';
import type { SharedSubscription } from '../../core/live.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { PageArgs } from '../../core/page.ts';
import { DocumentReading } from '../../core/reading.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import type { RequestNotes } from '../../web/reply.ts';
import { AnswerBudget, type Asks } from './page-budget.ts';

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
  /** Notes for the access log; absent if the operation has no access log line of its own. */
  readonly notes?: RequestNotes | undefined;
  /** The trace context of the request; commands that the request admits belong to that trace. */
  readonly trace?: TraceContext | undefined;
};

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
  /**
   * Must have completed before payloads of `subject` are shown. For an administrator, it writes one audit row per
   * context and subject; it throws `audit_unavailable`, and `forbidden` if administrators may not read payloads here.
   * For any other requester it does nothing: access to own payloads is not audited.
   */
  readonly readPayload: (subject: AuditSubject) => MaybePromise<void>;
  readonly notes: RequestNotes | undefined;
  readonly trace: TraceContext | undefined;
  readonly #asks: Asks;
  #loaders: Forgets[] | null = null;
  #budget: AnswerBudget | null = null;

  constructor({ core, requester, signal, reading = new DocumentReading(), notes, trace, asks = null }: ContextOptions) {
    this.#asks = asks;
    this.core = core;
    this.requester = requester;
    this.signal = signal;
    this.reading = reading;
    this.notes = notes;
    this.trace = trace;
    this.readPayload = requester?.kind === 'admin' ? readOnce(core, requester, notes) : () => {};
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

/** Creates a `readPayload` that writes one audit row per subject, however many fields show the subject's payloads. */
function readOnce(core: Core, requester: Principal, notes: RequestNotes | undefined): Context['readPayload'] {
  const rows = new Map<string, MaybePromise<void>>();
  return (subject) => {
    const key = canonicalJson(subject);
    const known = rows.get(key);
    if (rows.has(key)) return known;
    const row = core.reveals.read(requester, subject, notes?.requestId ?? null);
    rows.set(key, row);
    return row;
  };
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

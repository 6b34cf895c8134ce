/** The context of one GraphQL operation: who asks, and the loaders and the budget of bytes of this answer. */
import DataLoader from 'dataloader';
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import type { Principal, Requester } from '../../core/auth/principal.ts';
import { ChurnMap } from '../../core/collections.ts';
import type { Command } from '../../core/commands/command.ts';
import type { NodeView, ScopeView } from '../../core/commands/operator.ts';
import type { CommandLoad } from '../../core/commands/stores.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ContextKey, CountedWindow, ExecutionContext, WindowKey } from '../../core/contexts/context.ts';
import type { ContextQuery, WindowQuery, WorkerList, WorkerQuery } from '../../core/contexts/contexts.ts';
import type { Core, HangUp, PendingRpc, Summary, UserView } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import {
  streamKey,
  type Message,
  type MessageKey,
  type ShownPayload,
  type StreamKey,
  type StreamSummary,
} from '../../core/history/message.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { canonicalJson } from '../../core/json.ts';
import { ANSWER_SPILL_BYTES } from '../../core/limits.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Page } from '../../core/page.ts';
import { DocumentReading } from '../../core/reading.ts';
import type { SessionView, SiteView } from '../../core/sites/site-policy.ts';
import { siteKeyText, type SiteKey } from '../../core/sites/site.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import type { RequestNotes } from '../../web/reply.ts';
import { AnswerBudget, type Asks } from './page-budget.ts';

/**
 * The context of one request's resolvers. Never shared between requests: the loaders cache what this requester may see.
 */
export type Context = {
  readonly core: Core;
  /** The requester; null if the request had no token. */
  readonly requester: Principal | null;
  readonly loaders: Loaders;
  /** What this operation reads: it is remembered until the next event of a subscription. */
  readonly reading: DocumentReading;
  /** The bytes that the lists of this answer may still hold. */
  readonly budget: AnswerBudget;
  /** The signal that is aborted when the caller hangs up. That ends the caller's waits, never its commands. */
  readonly signal: HangUp | undefined;
  /**
   * Asks core whether payloads of `subject` may be shown. They may be shown once the call has completed. If the
   * requester is an administrator, one audit row per request and subject is written first. Throws `audit_unavailable`,
   * and `forbidden` if administrators may not read payloads here. A user's access to their own payloads is not audited.
   */
  readonly readPayload: (subject: AuditSubject) => MaybePromise<void>;
  /** Notes for the access log; undefined if the operation has no access log line of its own. */
  readonly notes: RequestNotes | undefined;
  /** The trace context of the request; commands that it admits belong to that trace. */
  readonly trace: TraceContext | undefined;
};

type ContextOptions = {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal?: HangUp | undefined;
  /** What the operation reads; absent: the context begins a reading of its own. */
  readonly reading?: DocumentReading | undefined;
  /** The fields that the operation selects; undefined if unknown. */
  readonly asks?: Asks | undefined;
  readonly notes?: RequestNotes | undefined;
  readonly trace?: TraceContext | undefined;
};

/** Creates a new context for one operation of `requester`. */
export function createContext(options: ContextOptions): Context {
  return new OwnContext(options);
}

class OwnContext implements Context {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal: HangUp | undefined;
  readonly reading: DocumentReading;
  readonly readPayload: Context['readPayload'];
  readonly #asks: Asks;
  readonly notes: RequestNotes | undefined;
  readonly trace: TraceContext | undefined;
  #loaders: Loaders | null = null;
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

  /** The loaders, created on first use: invocations need none. */
  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.core, this.requester, this.reading));
  }

  get budget(): AnswerBudget {
    return (this.#budget ??= new AnswerBudget(this.#asks));
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

// Batches the reads of nested fields of one request: one call of core for each kind of field at each level of nesting.

/**
 * Loads nested fields in batches: all parents of one tick cause one call of core. In direct mode each key is loaded at
 * once instead, since all state is in this process' memory and that costs less. Values are cached until `forget`, which
 * a subscription calls before each event so that no event shows values cached for an earlier one.
 */
type Loaders = {
  readonly connection: (key: ClientKey) => MaybePromise<Connection | null>;
  readonly reconnects: (key: ClientKey) => MaybePromise<number>;
  readonly load: (key: ClientKey) => MaybePromise<CommandLoad>;
  readonly connectionsOfUser: (userId: string, first: number) => MaybePromise<Summary<Connection>>;
  readonly streamsOfUser: (userId: string, first: number) => MaybePromise<Summary<StreamSummary>>;
  readonly pendingOfUser: (userId: string, first: number) => MaybePromise<Summary<PendingRpc>>;
  readonly pendingOfClient: (key: ClientKey, first: number) => MaybePromise<Summary<PendingRpc>>;
  readonly waitersOfCommand: (key: CommandKey) => MaybePromise<readonly PendingRpc[]>;
  readonly contexts: (query: ContextQuery, first: number) => MaybePromise<Page<ExecutionContext>>;
  readonly windows: (query: WindowQuery, first: number) => MaybePromise<Page<CountedWindow>>;
  readonly workers: (query: WorkerQuery, first: number) => MaybePromise<WorkerList>;
  readonly sitesOfUser: (userId: string, first: number) => MaybePromise<Summary<SiteView>>;
  /** Loads payloads. The resolver decides whether the requester asked for them. */
  readonly payload: Payloads['load'];
  /** Loads rows by the keys of their ids, for `node` and `nodes`. */
  readonly nodes: NodeLoaders;
  forget(): void;
};

function createLoaders(core: Core, requester: Principal | null, reading: DocumentReading): Loaders {
  return new LazyLoaders(core, requester, reading);
}

/** The loaders of one request. Each is created on first use, since most requests need few of them. */
class LazyLoaders implements Loaders {
  readonly #core: Core;
  readonly #requester: Principal | null;
  readonly #reading: DocumentReading;
  readonly #loading: Loading;
  /** The loaders that were created. */
  readonly #made: { forget(): void }[] = [];
  #connection: Load<ClientKey, Connection | null> | null = null;
  #reconnects: Load<ClientKey, number> | null = null;
  #load: Load<ClientKey, CommandLoad> | null = null;
  #waiters: Load<CommandKey, readonly PendingRpc[]> | null = null;
  #connections: LoadPage<string, Summary<Connection>> | null = null;
  #streams: LoadPage<string, Summary<StreamSummary>> | null = null;
  #ofUser: LoadPage<string, Summary<PendingRpc>> | null = null;
  #ofClient: LoadPage<ClientKey, Summary<PendingRpc>> | null = null;
  #contexts: LoadPage<ContextQuery, Page<ExecutionContext>> | null = null;
  #windows: LoadPage<WindowQuery, Page<CountedWindow>> | null = null;
  #workers: LoadPage<WorkerQuery, WorkerList> | null = null;
  #sites: LoadPage<string, Summary<SiteView>> | null = null;
  #payloads: Payloads | null = null;
  #nodes: NodeLoaders | null = null;

  constructor(core: Core, requester: Principal | null, reading: DocumentReading) {
    this.#reading = reading;
    this.#core = core;
    this.#requester = requester;
    this.#loading = loadingOf(core);
  }

  get connection(): Loaders['connection'] {
    const { connections } = this.#core;
    this.#connection ??= this.#keep(this.#loading.single(clientKeyText, (keys) => connections.many(keys)));
    return this.#connection.load;
  }

  get reconnects(): Loaders['reconnects'] {
    const { connections } = this.#core;
    this.#reconnects ??= this.#keep(this.#loading.single(clientKeyText, (keys) => connections.reconnects(keys)));
    return this.#reconnects.load;
  }

  get load(): Loaders['load'] {
    const { delivery } = this.#core;
    this.#load ??= this.#keep(this.#loading.single(clientKeyText, (keys) => delivery.loads(keys)));
    return this.#load.load;
  }

  get waitersOfCommand(): Loaders['waitersOfCommand'] {
    const { rpc } = this.#core;
    this.#waiters ??= this.#keep(this.#loading.single(commandKeyText, (keys) => rpc.ofCommands(keys)));
    return this.#waiters.load;
  }

  get connectionsOfUser(): Loaders['connectionsOfUser'] {
    const { connections } = this.#core;
    this.#connections ??= this.#pages(itself, (ids, first) => connections.ofUsers(this.#requester, ids, first));
    return this.#connections.load;
  }

  get streamsOfUser(): Loaders['streamsOfUser'] {
    const { history } = this.#core;
    this.#streams ??= this.#pages(itself, (ids, first) => history.ofUsers(this.#requester, ids, first));
    return this.#streams.load;
  }

  get pendingOfUser(): Loaders['pendingOfUser'] {
    const { rpc } = this.#core;
    this.#ofUser ??= this.#pages(itself, (ids, first) => rpc.ofUsers(this.#requester, ids, first));
    return this.#ofUser.load;
  }

  get pendingOfClient(): Loaders['pendingOfClient'] {
    const { rpc } = this.#core;
    this.#ofClient ??= this.#pages(clientKeyText, (keys, first) => rpc.ofClients(this.#requester, keys, first));
    return this.#ofClient.load;
  }

  get contexts(): Loaders['contexts'] {
    const { contexts } = this.#core;
    this.#contexts ??= this.#pages(canonicalJson, (asked: readonly ContextQuery[], first) =>
      contexts.lists(this.#requester, asked, first, this.#reading),
    );
    return this.#contexts.load;
  }

  get windows(): Loaders['windows'] {
    const { contexts } = this.#core;
    this.#windows ??= this.#pages(canonicalJson, (asked: readonly WindowQuery[], first) =>
      contexts.windowLists(this.#requester, asked, first, this.#reading),
    );
    return this.#windows.load;
  }

  get workers(): Loaders['workers'] {
    const { contexts } = this.#core;
    this.#workers ??= this.#pages(canonicalJson, (asked: readonly WorkerQuery[], first) =>
      contexts.workers(this.#requester, asked, first, this.#reading),
    );
    return this.#workers.load;
  }

  get sitesOfUser(): Loaders['sitesOfUser'] {
    const { sites } = this.#core;
    this.#sites ??= this.#pages(itself, (ids, first) => sites.ofUsers(this.#requester, ids, first));
    return this.#sites.load;
  }

  get payload(): Loaders['payload'] {
    return (this.#payloads ??= this.#keep(createPayloads(this.#core, this.#requester))).load;
  }

  get nodes(): NodeLoaders {
    return (this.#nodes ??= this.#keep(createNodeLoaders(this.#core, this.#requester)));
  }

  forget(): void {
    for (const loader of this.#made) loader.forget();
  }

  #pages<K, V>(
    keyOf: (key: K) => string,
    batch: (keys: readonly K[], first: number) => MaybePromise<readonly V[]>,
  ): LoadPage<K, V> {
    return this.#keep(this.#loading.pages(keyOf, batch));
  }

  #keep<L extends { forget(): void }>(loader: L): L {
    this.#made.push(loader);
    return loader;
  }
}

const itself = (key: string): string => key;

// Loads values by key: collected into batches in shared mode, each key immediately in direct mode.

/**
 * Chooses how values are loaded. In direct mode each key is loaded at once, since all state is in this process' memory
 * and that costs less than a batch.
 */
function loadingOf({ mode }: { readonly mode: 'direct' | 'shared' }): Loading {
  return mode === 'direct' ? AT_ONCE : BATCHED;
}

/** Loads values by key. A value is cached until `forget`. */
type Load<K, V> = { readonly load: (key: K) => MaybePromise<V>; readonly forget: () => void };
type LoadPage<K, V> = { readonly load: (key: K, first: number) => MaybePromise<V>; readonly forget: () => void };
/** Creates loaders of values, and of first pages. */
type Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V>;
  /**
   * Creates a loader of first pages, with one batch per page size: a page of one size cannot serve a request for
   * another size.
   */
  pages<K, V>(
    keyOf: (key: K) => string,
    batch: (keys: readonly K[], first: number) => MaybePromise<readonly V[]>,
  ): LoadPage<K, V>;
};

/** Loads values in batches. Each DataLoader is created on first use, since most requests need few of them. */
const BATCHED: Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V> {
    let loader: DataLoader<K, V, string> | undefined;
    const made = (): DataLoader<K, V, string> =>
      (loader ??= new DataLoader<K, V, string>(async (keys) => batch(keys), { cacheKeyFn: keyOf }));
    return { load: (key) => made().load(key), forget: () => void loader?.clearAll() };
  },
  pages(keyOf, batch) {
    return bySize((first) => BATCHED.single(keyOf, (keys) => batch(keys, first)));
  },
};

const AT_ONCE: Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V> {
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
  },
  pages(keyOf, batch) {
    return bySize((first) => AT_ONCE.single(keyOf, (keys) => batch(keys, first)));
  },
};

function bySize<K, V>(make: (first: number) => Load<K, V>): LoadPage<K, V> {
  const sizes = new ChurnMap<number, Load<K, V>>();
  return {
    load(key, first) {
      const known = sizes.get(first);
      if (known) return known.load(key);
      const loader = make(first);
      sizes.set(first, loader);
      return loader.load(key);
    },
    forget: () => sizes.clear(),
  };
}

function onlyOne<V>(values: readonly V[]): V {
  const [value] = values;
  if (value === undefined) throw new CallboardError('internal', 'A batch load of one key returned no value.');
  return value;
}

// Batches the reads of `node` and `nodes`: one call of core for each kind of row.

type Find<K, V> = (key: K) => MaybePromise<V | null>;

/**
 * Loads single rows by their keys, each kind in one batch. `user`, `session`, `dispatcherNode` and `scope` check the
 * access of the requester; for the other kinds the caller has checked it.
 */
type NodeLoaders = {
  readonly user: Find<string, UserView>;
  readonly command: Find<CommandKey, Command>;
  readonly stream: Find<StreamKey, StreamSummary>;
  readonly message: Find<MessageKey, Message>;
  readonly context: Find<ContextKey, ExecutionContext>;
  readonly window: Find<WindowKey, CountedWindow>;
  readonly site: Find<SiteKey, SiteView>;
  readonly session: Find<string, SessionView>;
  readonly dispatcherNode: Find<string, NodeView>;
  readonly scope: Find<string, ScopeView>;
  readonly forget: () => void;
};

function createNodeLoaders(core: Core, requester: Requester): NodeLoaders {
  const { single } = loadingOf(core);
  const user = single(itself, (ids: readonly string[]) => core.users.many(requester, ids));
  const command = single(commandKeyText, (keys: readonly CommandKey[]) => core.delivery.many(keys));
  const stream = single(
    ({ userId, suffix }: StreamKey) => streamKey(userId, suffix),
    (keys) => core.history.manyStreams(keys),
  );
  const message = single(
    ({ userId, suffix, seq }: MessageKey) => `${seq}/${streamKey(userId, suffix)}`,
    (keys) => core.history.manyMessages(requester, keys),
  );
  const context = single(
    (key: ContextKey) => `${clientKeyText(key)}/${key.contextId}`,
    (keys) => core.contexts.many(keys),
  );
  const window = single(
    (key: WindowKey) => `${clientKeyText(key)}/${key.windowId}`,
    (keys) => core.contexts.manyWindows(keys),
  );
  const site = single(siteKeyText, (keys: readonly SiteKey[]) => core.sites.many(keys));
  const session = single(itself, (ids: readonly string[]) =>
    Promise.all(ids.map((id) => core.sites.session(requester, id))),
  );
  const dispatcherNode = single(itself, (ids: readonly string[]) => core.delivery.nodesById(requester, ids));
  const scope = single(itself, (ids: readonly string[]) => core.delivery.tenantsById(requester, ids));
  const all = [user, command, stream, message, context, window, site, session, dispatcherNode, scope];
  return {
    user: user.load,
    command: command.load,
    stream: stream.load,
    message: message.load,
    context: context.load,
    window: window.load,
    site: site.load,
    session: session.load,
    dispatcherNode: dispatcherNode.load,
    scope: scope.load,
    forget: () => all.forEach((loader) => loader.forget()),
  };
}

// Loads payloads of messages for one request, within the bytes that one answer may fetch.

type Payloads = { readonly load: (message: Message) => MaybePromise<ShownPayload>; readonly forget: () => void };

const NOT_SHOWN: ShownPayload = { state: 'redacted', text: null };

/**
 * Loads payloads for one request; each is looked up once, however many fields read it. Large payloads are fetched up to
 * ANSWER_SPILL_BYTES per request. Large payloads beyond that stay redacted, because otherwise one page could fill the
 * relay's memory.
 */
function createPayloads(core: Core, requester: Principal | null): Payloads {
  const read = async (messages: readonly Message[]): Promise<readonly ShownPayload[]> =>
    core.history.payloads(requester, messages);
  const loader = new DataLoader<Message, ShownPayload, string>(read, { cacheKeyFn: keyOf });
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
      loader.clearAll();
      decided.clear();
      left = ANSWER_SPILL_BYTES;
    },
  };
}

function keyOf({ userId, suffix, seq }: Message): string {
  return `${streamKey(userId, suffix)}/${seq}`;
}

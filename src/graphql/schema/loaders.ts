/**
 * Batches the reads of nested fields of one request: one call of core for each kind of field at each level of nesting.
 */
import type { Principal } from '../../core/auth/principal.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ExecutionContext } from '../../core/contexts/context.ts';
import type { ContextQuery, WindowQuery, WorkerList, WorkerQuery } from '../../core/contexts/api.ts';
import type { CountedWindow } from '../../core/contexts/store.ts';
import type { Core, PendingRpc, Summary } from '../../core/core.ts';
import type { CommandLoad } from '../../core/delivery/commands.ts';
import type { StreamSummary } from '../../core/history/store.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { canonicalJson } from '../../core/json.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Page } from '../../core/page.ts';
import type { DocumentReading } from '../../core/reading.ts';
import type { SiteView } from '../../core/sites/api.ts';
import { createPayloads, type Payloads } from './history-payload.ts';
import { loadingOf, type Load, type Loading, type LoadPage } from './loaders-batch.ts';
import { createNodeLoaders, type NodeLoaders } from './node-loaders.ts';

/**
 * Loads nested fields in batches: all parents of one tick cause one call of core. In direct mode each key is loaded at
 * once instead, since all state is in this process' memory and that costs less. Values are cached until `forget`, which
 * a subscription calls before each event so that no event shows values cached for an earlier one.
 */
export type Loaders = {
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

export function createLoaders(core: Core, requester: Principal | null, reading: DocumentReading): Loaders {
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

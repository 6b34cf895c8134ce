import DataLoader from 'dataloader';
import type { Principal } from '../../core/auth/principal.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ExecutionContext } from '../../core/contexts/context.ts';
import type { ContextQuery, WindowQuery, WorkerList, WorkerQuery } from '../../core/contexts/api.ts';
import type { CountedWindow } from '../../core/contexts/store.ts';
import type { Core, PendingRpc, Summary } from '../../core/core.ts';
import type { StreamSummary } from '../../core/history/store.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { canonicalJson } from '../../core/json.ts';
import { CallboardError } from '../../core/errors.ts';
import { LazyMap } from '../../core/lazy.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Page } from '../../core/page.ts';
import type { SiteView } from '../../core/sites/api.ts';
import { createPayloads, type Payloads } from './history-payload.ts';

/**
 * Loads nested fields in batches: all parents of one tick cause one call of core. In direct mode each key is loaded at
 * once instead, since all state is in this process' memory and that costs less. Values are cached until `forget`, which
 * a subscription calls before each event so that no event shows values cached for an earlier one.
 */
export type Loaders = {
  readonly connection: (key: ClientKey) => MaybePromise<Connection | null>;
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
  readonly forget: () => void;
};

export function createLoaders(core: Core, requester: Principal | null): Loaders {
  const { single, pages } = core.mode === 'direct' ? AT_ONCE : BATCHED;
  const connection = single(clientKeyText, (keys: readonly ClientKey[]) => core.connections.many(keys));
  const waiters = single(commandKeyText, (keys: readonly CommandKey[]) => core.rpc.ofCommands(keys));
  const connections = pages(itself, (ids: readonly string[], first) => core.connections.ofUsers(requester, ids, first));
  const streams = pages(itself, (ids: readonly string[], first) => core.history.ofUsers(requester, ids, first));
  const ofUser = pages(itself, (ids: readonly string[], first) => core.rpc.ofUsers(requester, ids, first));
  const ofClient = pages(clientKeyText, (keys: readonly ClientKey[], first) =>
    core.rpc.ofClients(requester, keys, first),
  );
  const contexts = pages(canonicalJson, (asked: readonly ContextQuery[], first) =>
    core.contexts.lists(requester, asked, first),
  );
  const windows = pages(canonicalJson, (asked: readonly WindowQuery[], first) =>
    core.contexts.windowLists(requester, asked, first),
  );
  const workers = pages(canonicalJson, (asked: readonly WorkerQuery[], first) =>
    core.contexts.workers(requester, asked, first),
  );
  const sites = pages(itself, (ids: readonly string[], first) => core.sites.ofUsers(requester, ids, first));
  const payloads = createPayloads(core, requester);
  const ofRooms = [connection, waiters, connections, streams, ofUser, ofClient, payloads];
  const all = [...ofRooms, contexts, windows, workers, sites];
  return {
    connection: connection.load,
    connectionsOfUser: connections.load,
    streamsOfUser: streams.load,
    pendingOfUser: ofUser.load,
    pendingOfClient: ofClient.load,
    waitersOfCommand: waiters.load,
    contexts: contexts.load,
    windows: windows.load,
    workers: workers.load,
    sitesOfUser: sites.load,
    payload: payloads.load,
    forget: () => all.forEach((loader) => loader.forget()),
  };
}

const itself = (key: string): string => key;

type Load<K, V> = { readonly load: (key: K) => MaybePromise<V>; readonly forget: () => void };
type LoadPage<K, V> = { readonly load: (key: K, first: number) => MaybePromise<V>; readonly forget: () => void };
type Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V>;
  /** One batch per page size: a page of one size cannot serve a request for another size. */
  pages<K, V>(
    keyOf: (key: K) => string,
    batch: (keys: readonly K[], first: number) => MaybePromise<readonly V[]>,
  ): LoadPage<K, V>;
};

/** Each DataLoader is created on first use, since most requests need few of them. */
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
    const loaded = new LazyMap<string, MaybePromise<V>>();
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
  const sizes = new LazyMap<number, Load<K, V>>();
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

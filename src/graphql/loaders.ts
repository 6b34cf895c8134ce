import DataLoader from 'dataloader';
import type { Principal } from '../core/auth/principal.ts';
import type { Connection } from '../core/connections/connection.ts';
import type { ExecutionContext } from '../core/contexts/context.ts';
import type { ContextQuery, WindowQuery, WorkerList, WorkerQuery } from '../core/contexts/room.ts';
import type { CountedWindow } from '../core/contexts/store.ts';
import type { Core, PendingRpc, Summary } from '../core/core.ts';
import type { StreamSummary } from '../core/history/store.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../core/ids.ts';
import { canonicalJson } from '../core/json.ts';
import type { Maybe } from '../core/maybe.ts';
import type { Page } from '../core/page.ts';
import type { SiteView } from '../core/sites/room.ts';
import { createPayloads, type Payloads } from './history-payload.ts';

/**
 * Nested fields by batch: however many parents ask in one tick, core is asked once. What was loaded is remembered until `forget`,
 * which a subscription calls before each event so that every event is seen with fresh eyes.
 */
export type Loaders = {
  readonly connection: (key: ClientKey) => Promise<Connection | null>;
  readonly connectionsOfUser: (userId: string, first: number) => Promise<Summary<Connection>>;
  readonly streamsOfUser: (userId: string, first: number) => Promise<Summary<StreamSummary>>;
  readonly pendingOfUser: (userId: string, first: number) => Promise<Summary<PendingRpc>>;
  readonly pendingOfClient: (key: ClientKey, first: number) => Promise<Summary<PendingRpc>>;
  readonly waitersOfCommand: (key: CommandKey) => Promise<readonly PendingRpc[]>;
  readonly contexts: (query: ContextQuery, first: number) => Promise<Page<ExecutionContext>>;
  readonly windows: (query: WindowQuery, first: number) => Promise<Page<CountedWindow>>;
  readonly workers: (query: WorkerQuery, first: number) => Promise<WorkerList>;
  readonly sitesOfUser: (userId: string, first: number) => Promise<Summary<SiteView>>;
  /** Payloads that were asked for; asking is for the resolver to judge. */
  readonly payload: Payloads['load'];
  readonly forget: () => void;
};

export function createLoaders(core: Core, who: Principal | null): Loaders {
  const connection = single(clientKeyText, (keys: readonly ClientKey[]) => core.connections.many(keys));
  const waiters = single(commandKeyText, (keys: readonly CommandKey[]) => core.rpc.ofCommands(keys));
  const connections = pages(itself, (ids: readonly string[], first) => core.connections.ofUsers(who, ids, first));
  const streams = pages(itself, (ids: readonly string[], first) => core.history.ofUsers(who, ids, first));
  const ofUser = pages(itself, (ids: readonly string[], first) => core.rpc.ofUsers(who, ids, first));
  const ofClient = pages(clientKeyText, (keys: readonly ClientKey[], first) => core.rpc.ofClients(who, keys, first));
  const contexts = pages(canonicalJson, (asked: readonly ContextQuery[], first) =>
    core.contexts.lists(who, asked, first),
  );
  const windows = pages(canonicalJson, (asked: readonly WindowQuery[], first) =>
    core.contexts.windowLists(who, asked, first),
  );
  const workers = pages(canonicalJson, (asked: readonly WorkerQuery[], first) =>
    core.contexts.workers(who, asked, first),
  );
  const sites = pages(itself, (ids: readonly string[], first) => core.sites.ofUsers(who, ids, first));
  const payloads = createPayloads(core);
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

function single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => Maybe<readonly V[]>) {
  const loader = new DataLoader<K, V, string>(async (keys) => batch(keys), { cacheKeyFn: keyOf });
  return { load: (key: K): Promise<V> => loader.load(key), forget: () => void loader.clearAll() };
}

/** One batch per page size: rows of one size cannot serve another. */
function pages<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[], first: number) => Maybe<readonly V[]>) {
  const sizes = new Map<number, DataLoader<K, V, string>>();
  const loaderOf = (first: number): DataLoader<K, V, string> => {
    const known = sizes.get(first);
    if (known) return known;
    const loader = new DataLoader<K, V, string>(async (keys) => batch(keys, first), { cacheKeyFn: keyOf });
    sizes.set(first, loader);
    return loader;
  };
  return { load: (key: K, first: number): Promise<V> => loaderOf(first).load(key), forget: () => sizes.clear() };
}

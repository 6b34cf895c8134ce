/** Batches the reads of nested fields: one call of core for each kind and level, for one request. */
import type { Principal } from '../../core/auth/principal.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ExecutionContext } from '../../core/contexts/context.ts';
import type { ContextQuery, WindowQuery, WorkerList, WorkerQuery } from '../../core/contexts/api.ts';
import type { CountedWindow } from '../../core/contexts/store.ts';
import type { Core, PendingRpc, Summary } from '../../core/core.ts';
import type { StreamSummary } from '../../core/history/store.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { canonicalJson } from '../../core/json.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Page } from '../../core/page.ts';
import type { SiteView } from '../../core/sites/api.ts';
import { createPayloads, type Payloads } from './history-payload.ts';
import { loadingOf } from './loaders-batch.ts';
import { createNodeLoaders, type NodeLoaders } from './node-loaders.ts';

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
  /** Rows by the keys of their ids, for `node` and `nodes`. */
  readonly nodes: NodeLoaders;
  readonly forget: () => void;
};

export function createLoaders(core: Core, requester: Principal | null): Loaders {
  const { single, pages } = loadingOf(core);
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
  const nodes = createNodeLoaders(core, requester);
  const all = [...ofRooms, contexts, windows, workers, sites, nodes];
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
    nodes,
    forget: () => all.forEach((loader) => loader.forget()),
  };
}

const itself = (key: string): string => key;

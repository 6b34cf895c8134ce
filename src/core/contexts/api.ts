/** The interface for reading contexts, windows and workers. Types only. */
import type { Principal } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import type { PageArgs } from '../cursor.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness, Page } from '../page.ts';
import type { DocumentReading } from '../reading.ts';
import type { ContextStatus, ExecutionContext, Ownership, WindowStatus } from './context.ts';
import type { ContextKey, CountedWindow, WindowKey } from './store.ts';

type Requester = Principal | null;

/**
 * A filter of contexts. A context must match every member that is present. Without `userId`, a user gets its own
 * contexts and an administrator those of all users.
 */
export type ContextQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly clientType?: ClientType | null | undefined;
  readonly status?: ContextStatus | null | undefined;
  readonly ownership?: Ownership | null | undefined;
  readonly windowId?: string | null | undefined;
};

export type WindowQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly clientType?: ClientType | null | undefined;
  readonly status?: WindowStatus | null | undefined;
  readonly ownership?: Ownership | null | undefined;
};

/**
 * A worker is a context whose ownership is `worker` and that is not closed. `idle`: it has no task. `assigned`: it has
 * a task. `available`: it has no task, its client reports it as idle, and the client's link is up. `task`: it has the
 * task `taskId`.
 */
export type WorkerView =
  { readonly view: 'idle' | 'assigned' | 'available' } | { readonly view: 'task'; readonly taskId: string };

/** A query for the workers of one user. */
export type WorkerQuery = WorkerView & {
  readonly userId: string;
  readonly clientType?: ClientType | null | undefined;
};

export type WorkerList = { readonly items: readonly ExecutionContext[]; readonly completeness: Completeness };
export type RegistryCount = { readonly count: number; readonly completeness: Completeness };

/**
 * The contexts and windows in which clients can run work, as they report them. Reading does not assign, renew or
 * release anything. A worker's task is its current assignment in this registry and proves neither a durable job nor an
 * effect. Calls with the same `reading` share what they read of the store.
 */
export interface Contexts {
  list(
    requester: Requester,
    query: ContextQuery,
    page: PageArgs,
    reading?: DocumentReading,
  ): Promise<Page<ExecutionContext>>;
  /** Returns for each query the first page that `list` gives. For nested fields. */
  lists(
    requester: Requester,
    queries: readonly ContextQuery[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Page<ExecutionContext>[]>;
  count(requester: Requester, query: ContextQuery, reading?: DocumentReading): Promise<RegistryCount>;
  windows(
    requester: Requester,
    query: WindowQuery,
    page: PageArgs,
    reading?: DocumentReading,
  ): Promise<Page<CountedWindow>>;
  /** Does the same as `lists`, for windows. */
  windowLists(
    requester: Requester,
    queries: readonly WindowQuery[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Page<CountedWindow>[]>;
  windowCount(requester: Requester, query: WindowQuery, reading?: DocumentReading): Promise<RegistryCount>;
  /**
   * Returns a window. Null if there is no such window, or if it belongs to another user. `clientId`: the client that
   * reports it; null: any. Throws `ambiguous` if it is null and several clients report a window of this id.
   */
  window(
    requester: Requester,
    userId: string,
    windowId: string,
    clientId?: string | null,
    reading?: DocumentReading,
  ): Promise<CountedWindow | null>;
  /** Returns contexts that the requester may read: one answer per key, in order; null where there is no row. */
  many(keys: readonly ContextKey[]): MaybePromise<readonly (ExecutionContext | null)[]>;
  /** Does the same as `many`, for windows. */
  manyWindows(keys: readonly WindowKey[]): MaybePromise<readonly (CountedWindow | null)[]>;
  /**
   * Returns for each query at most `first` workers (1 to WORKER_LIST), in order of client and context. Usually one
   * round trip; more if a query has to scan many rows.
   */
  workers(
    requester: Requester,
    queries: readonly WorkerQuery[],
    first: number,
    reading?: DocumentReading,
  ): Promise<readonly WorkerList[]>;
}

import type { Principal } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import type { PageArgs } from '../cursor.ts';
import type { Maybe } from '../maybe.ts';
import type { Completeness, Page } from '../page.ts';
import type { ContextStatus, ExecutionContext, Ownership, WindowStatus } from './context.ts';
import type { CountedWindow } from './store.ts';

type Asker = Principal | null;

/** Members left out keep everything; the others narrow together. Without `userId`, a user's own and an administrator's all. */
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
 * A worker is a context whose ownership is `worker` and that is not closed. `idle`: without a task; `assigned`: with one; `available`: idle, by
 * its own word too, over a link that is up; `task`: those that the task is assigned to.
 */
export type WorkerView =
  { readonly view: 'idle' | 'assigned' | 'available' } | { readonly view: 'task'; readonly taskId: string };

/** Workers of one user, which is always named. */
export type WorkerQuery = WorkerView & {
  readonly userId: string;
  readonly clientType?: ClientType | null | undefined;
};

export type WorkerList = { readonly items: readonly ExecutionContext[]; readonly completeness: Completeness };
export type RegistryCount = { readonly count: number; readonly completeness: Completeness };

/**
 * Where execution can happen, as clients report it now. Reading assigns, renews and releases nothing; a task on a worker is a current
 * assignment in this registry, and proves neither a durable job nor an effect.
 */
export interface Contexts {
  list(who: Asker, query: ContextQuery, page: PageArgs): Promise<Page<ExecutionContext>>;
  /** For nested fields: of each query the first page that `list` gives. One round trip. */
  lists(who: Asker, queries: readonly ContextQuery[], first: number): Maybe<readonly Page<ExecutionContext>[]>;
  count(who: Asker, query: ContextQuery): Promise<RegistryCount>;
  windows(who: Asker, query: WindowQuery, page: PageArgs): Promise<Page<CountedWindow>>;
  /** As `lists`. */
  windowLists(who: Asker, queries: readonly WindowQuery[], first: number): Maybe<readonly Page<CountedWindow>[]>;
  windowCount(who: Asker, query: WindowQuery): Promise<RegistryCount>;
  /** Null: absent or foreign. */
  window(who: Asker, userId: string, windowId: string): Promise<CountedWindow | null>;
  /** Of each query at most `first` workers, 1 to WORKER_LIST, in order of client and context. One round trip, where none is cut by its size. */
  workers(who: Asker, queries: readonly WorkerQuery[], first: number): Promise<readonly WorkerList[]>;
}

/** Lists workers: contexts whose ownership is `worker`. */
import { readUser, type Principal } from '../auth/principal.ts';
import { completenessOf } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { id } from '../ids.ts';
import { COUNT_SCAN, WORKER_LIST } from '../limits.ts';
import { SCAN_BUDGET, type Scan } from '../page.ts';
import { within } from '../range.ts';
import { DocumentReading } from '../reading.ts';
import { silentSources, withGaps } from '../silence.ts';
import type { ContextStatus, ExecutionContext } from './context.ts';
import type { Contexts, WorkerList, WorkerQuery } from './api.ts';
import type { ContextFilter, ContextStore } from './store.ts';

const NOT_CLOSED: readonly ContextStatus[] = ['active', 'idle', 'stale'];
const FIRST = { default: WORKER_LIST, min: 1, max: WORKER_LIST } as const;

/** Lists workers. The lists have no pages, so each scans as many rows as a count would (COUNT_SCAN). */
export function createWorkers(deps: Deps): Contexts['workers'] {
  const { backend, clock } = deps;
  const store = backend.contexts;
  const listOf = ({ rows, next, gaps }: Scan<ExecutionContext>, first: number): WorkerList => {
    const items = rows.map(({ row }) => row);
    const cut = { limit: items.length < first ? COUNT_SCAN : first, reason: 'limit_reached' } as const;
    const limits = next === null ? { limit: null, reason: null } : cut;
    const own = { source: 'contexts', nodeId: null, observed: items.length, asOf: clock.now() } as const;
    return { items, completeness: completenessOf([{ ...own, ...limits, complete: next === null }, ...gaps]) };
  };
  return async (requester, queries, requested, reading = new DocumentReading()) => {
    const filters = queries.map((query) => filterOf(requester, query));
    const first = within('first', requested, FIRST);
    const [scans, silent] = await Promise.all([store.lists(filters, first, reading), silentSources(deps, 'contexts')]);
    const whole = await Promise.all(
      filters.map((filter, i) => readOn(store, filter, { first, scan: scans[i] ?? NOTHING, reading })),
    );
    return whole.map((scan) => listOf(withGaps(scan, silent), first));
  };
}

const NOTHING: Scan<ExecutionContext> = { rows: [], next: null, gaps: [] };

type Begun = { readonly first: number; readonly scan: Scan<ExecutionContext>; readonly reading: DocumentReading };

/** Reads further pages after a scan that ended early because few of many rows matched. */
async function readOn(
  store: ContextStore,
  filter: ContextFilter,
  { first, scan, reading }: Begun,
): Promise<Scan<ExecutionContext>> {
  const rows = [...scan.rows];
  const gaps = [...scan.gaps];
  let { next } = scan;
  for (let seen = SCAN_BUDGET; next !== null && rows.length < first && seen < COUNT_SCAN; seen += SCAN_BUDGET) {
    const more: Scan<ExecutionContext> = await store.list(filter, { first: first - rows.length, after: next }, reading);
    rows.push(...more.rows);
    gaps.push(...more.gaps);
    next = more.next;
  }
  return { rows, next, gaps };
}

function filterOf(requester: Principal | null, query: WorkerQuery): ContextFilter {
  const workers = {
    userId: readUser(requester, query.userId),
    clientId: null,
    clientType: query.clientType ?? null,
    statuses: NOT_CLOSED,
    ownership: 'worker',
    windowId: null,
    assigned: null,
    taskId: null,
  } as const;
  switch (query.view) {
    case 'idle':
      return { ...workers, assigned: false };
    case 'assigned':
      return { ...workers, assigned: true };
    case 'available':
      return { ...workers, assigned: false, statuses: ['idle'] };
    case 'task':
      return { ...workers, taskId: id('task_id', query.taskId) };
  }
}

/** The payload of `report`, member by member: what the relay reads and what a client sends. */
import { checkFields, type Fields, type Table } from './fields.ts';

/** One execution context; beside these, `metadata` is any JSON of at most METADATA_MAX_BYTES. */
export const CONTEXT = {
  context_id: 'id',
  status: 'contextStatus',
  ownership: 'ownership',
  window_id: 'id?',
  /** The task that the context is assigned to now. */
  task_id: 'id?',
  title: 'title?',
} as const satisfies Table;

/** One browser window. The three last are its own counts, 0 when left out: shown while its client reports no contexts. */
export const WINDOW = {
  window_id: 'id',
  ownership: 'ownership',
  focused: 'bool',
  type: 'word',
  state: 'word',
  incognito: 'bool',
  tab_count: 'count',
  capacity: 'count?',
  draining: 'bool',
  status: 'windowStatus',
  worker_count: 'count?',
  idle_count: 'count?',
  busy_count: 'count?',
} as const satisfies Table;

export type WireContext = Fields<typeof CONTEXT>;
export type WireWindow = Fields<typeof WINDOW>;

/** What one client may have at once, and how much of metadata each context. */
export const CONTEXTS_MAX = 1000;
export const WINDOWS_MAX = 100;
export const METADATA_MAX_BYTES = 16 * 1024;

/** Total. The row, or what is wrong with it, in words that begin with its member. Members that the table does not name are ignored. */
export function parseRow<T extends Table>(table: T, row: unknown): Fields<T> | string {
  if (typeof row !== 'object' || row === null || Array.isArray(row)) return 'an object was expected';
  return checkFields(table, row as Record<string, unknown>) ?? withoutNulls<T>(row as Record<string, unknown>);
}

/** A member that is null counts as left out. */
function withoutNulls<T extends Table>(row: Readonly<Record<string, unknown>>): Fields<T> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Fields<T>;
}

/**
 * The members of a `report` payload, in which a client reports its contexts and windows. The relay reads them, and the
 * client sends them.
 */
import { checkRow, type FieldsOf, type RowTable } from './fields.ts';
import { isRecord } from './json.ts';

/** One execution context. Besides these members, it may have `metadata`: any JSON of at most METADATA_MAX_BYTES. */
export const CONTEXT = {
  context_id: 'id',
  status: 'contextStatus',
  ownership: 'ownership',
  window_id: 'id?',
  /** The task that the context is assigned to now. */
  task_id: 'id?',
  title: 'title?',
} as const satisfies RowTable;

/**
 * One browser window. The last three members are the window's own counts, 0 when absent. The relay shows them while the
 * client reports no contexts.
 */
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
} as const satisfies RowTable;

export type WireContext = FieldsOf<typeof CONTEXT>;
export type WireWindow = FieldsOf<typeof WINDOW>;

/** The limits of one client: contexts, windows, and the bytes of metadata of each context. */
export const CONTEXTS_MAX = 1000;
export const WINDOWS_MAX = 100;
export const METADATA_MAX_BYTES = 16 * 1024;

/**
 * Returns the row, or a description of its first fault. The description begins with the wrong member's name if the row
 * is an object. Never throws. Members that the table does not name are returned unchecked.
 */
export function parseRow<T extends RowTable>(table: T, row: unknown): FieldsOf<T> | string {
  if (!isRecord(row)) return 'an object was expected';
  const fault = checkRow(table, row);
  if (fault !== null) return fault;
  // Members that are null count as absent.
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as FieldsOf<T>;
}

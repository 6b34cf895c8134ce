/** The tables of the rows in a `report` payload, in which a client reports its contexts and windows. */
import { checkRow, type FieldsOf, type RowTable } from './fields.ts';
import { isRecord } from './json.ts';

/** An execution context. It may also have the member `metadata`: any JSON of at most METADATA_MAX_BYTES. */
export const CONTEXT = {
  context_id: 'id',
  status: 'contextStatus',
  ownership: 'ownership',
  window_id: 'id?',
  /** The task to which the context is assigned now. */
  task_id: 'id?',
  title: 'title?',
} as const satisfies RowTable;

/**
 * A browser window. The last three members are the client's own counts; 0 if absent. The relay shows them only if the
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

/** The most contexts and windows of one client, and the most bytes of a context's metadata. */
export const CONTEXTS_MAX = 1000;
export const WINDOWS_MAX = 100;
export const METADATA_MAX_BYTES = 16 * 1024;

/**
 * Checks a row. Returns the row, or a description of its first fault, which begins with the name of the wrong member if
 * the row is an object. Never throws. Members that are not in the table are returned unchecked.
 */
export function parseRow<T extends RowTable>(table: T, row: unknown): FieldsOf<T> | string {
  if (!isRecord(row)) return 'an object was expected';
  const fault = checkRow(table, row);
  if (fault !== null) return fault;
  // Null members count as absent.
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as FieldsOf<T>;
}

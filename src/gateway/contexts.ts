/** Parses the payload of a `report` frame: contexts and windows. */
import type { ReportedContext, ReportedWindow } from '../core/contexts/context.ts';
import type { ContextReport, ReportPart } from '../core/contexts/store.ts';
import { invalid } from '../core/errors.ts';
import { id } from '../core/ids.ts';
import { utf8Length, type JsonText, type Members } from '../core/json.ts';
import { CLIENT_CONTEXTS, METADATA_BYTES } from '../core/limits.ts';
import type { Table } from '../protocol/fields.ts';
import { CONTEXT, parseRow, WINDOW } from '../protocol/report.ts';
import { arrayOf, flagIn, memberIn, objectOf, payloadMembers, scalarOf } from './payload.ts';

/**
 * The most items that one list of a report may hold. It exceeds what a client may have, so a report over that limit is
 * still read and gets `capacity_exceeded`.
 */
const ROWS = 2 * CLIENT_CONTEXTS;

/**
 * Reads the payload of `report`. If any member is invalid, throws `invalid_argument` with the member's name. Unknown
 * members are ignored.
 */
export function readReport(payload: string | null): ContextReport {
  const members = payloadMembers(payload);
  return {
    contexts: readPart('contexts', memberIn(members, 'contexts'), { read: readContext, idOf: (row) => row.contextId }),
    windows: readPart('windows', memberIn(members, 'windows'), { read: readWindow, idOf: (row) => row.windowId }),
  };
}

type Rows<T> = {
  readonly read: (where: string, item: JsonText) => T;
  readonly idOf: (row: T) => string;
};

function readPart<T>(where: string, json: JsonText | null, { read, idOf }: Rows<T>): ReportPart<T> | null {
  if (json === null) return null;
  const members = objectOf(where, json);
  const each = <R>(member: string, readOne: (at: string, item: JsonText) => R): R[] => {
    const list = memberIn(members, member);
    const items = list === null ? [] : arrayOf(`${where}.${member}`, list, ROWS);
    return items.map((item, i) => readOne(`${where}.${member}[${i}]`, item));
  };
  const snapshot = flagIn(`${where}.snapshot`, memberIn(members, 'snapshot')) ?? false;
  const set = each('set', read);
  const removed = each('removed', readId);
  if (snapshot && removed.length > 0)
    invalid(`${where}.removed`, 'a snapshot removes every row that it does not set, so `removed` must be empty');
  checkOnce(where, [...set.map(idOf), ...removed]);
  return { snapshot, set, removed };
}

function readContext(where: string, item: JsonText): ReportedContext {
  const members = objectOf(where, item);
  const row = parseRow(CONTEXT, fieldsIn(members, CONTEXT));
  if (typeof row === 'string') return invalidAt(where, row);
  const metadata = memberIn(members, 'metadata');
  if (metadata !== null && utf8Length(metadata) > METADATA_BYTES)
    invalid(`${where}.metadata`, `at most ${METADATA_BYTES} bytes are kept`);
  return {
    contextId: row.context_id,
    status: row.status,
    ownership: row.ownership,
    windowId: row.window_id ?? null,
    taskId: row.task_id ?? null,
    title: row.title ?? null,
    metadata,
  };
}

function readWindow(where: string, item: JsonText): ReportedWindow {
  const row = parseRow(WINDOW, fieldsIn(objectOf(where, item), WINDOW));
  if (typeof row === 'string') return invalidAt(where, row);
  return {
    windowId: row.window_id,
    ownership: row.ownership,
    focused: row.focused,
    type: row.type,
    state: row.state,
    incognito: row.incognito,
    tabCount: row.tab_count,
    capacity: row.capacity ?? null,
    draining: row.draining,
    status: row.status,
    workerCount: row.worker_count ?? 0,
    idleCount: row.idle_count ?? 0,
    busyCount: row.busy_count ?? 0,
  };
}

/**
 * Reads the fields that the table names, without checking them. An absent field is null; an object or a list becomes
 * `{}`, which is refused later.
 */
function fieldsIn(members: Members, table: Table): Record<string, unknown> {
  return Object.fromEntries(Object.keys(table).map((field) => [field, scalarOf(members.get(field) ?? null)]));
}

/**
 * Throws `invalid_argument` for a row. `fault` starts with the name of the invalid member, or describes the row itself.
 */
function invalidAt(where: string, fault: string): never {
  const [, member, detail] = /^(\w+): (.*)$/s.exec(fault) ?? [];
  return member === undefined ? invalid(where, fault) : invalid(`${where}.${member}`, detail ?? fault);
}

function checkOnce(where: string, ids: readonly string[]): void {
  const seen = new Set<string>();
  for (const one of ids) {
    if (seen.has(one)) invalid(where, `${one} appears twice`);
    seen.add(one);
  }
}

function readId(where: string, item: JsonText): string {
  const value = scalarOf(item);
  return typeof value === 'string' ? id(where, value) : invalid(where, 'a string was expected');
}

import type { ReportedContext, ReportedWindow } from '../core/contexts/context.ts';
import type { Report, ReportPart } from '../core/contexts/store.ts';
import { invalid } from '../core/errors.ts';
import { utf8Length, type JsonText } from '../core/json.ts';
import { METADATA_BYTES } from '../core/limits.ts';
import type { Fields, Table } from '../protocol/fields.ts';
import { CONTEXT, rowFault, WINDOW, type WireContext, type WireWindow } from '../protocol/report.ts';
import { checkedJson, isArrayText, isObjectText, itemsOf, membersOf } from './json.ts';

/** Reads the payload of `report`, all of it or nothing. Throws `invalid_argument` naming the member; members that it does not know are ignored. */
export function readReport(payload: string | null): Report {
  const json = payload === null ? null : checkedJson(payload);
  if (json === null) return invalid('payload', 'JSON that is not nested too deeply was expected');
  const members = objectOf('payload', json);
  return {
    contexts: readPart('contexts', members.get('contexts'), CONTEXT_ROWS),
    windows: readPart('windows', members.get('windows'), WINDOW_ROWS),
  };
}

type Rows<T extends Table, Row> = {
  readonly table: T;
  readonly idOf: (row: Row) => string;
  readonly row: (wire: Fields<T>, members: ReadonlyMap<string, JsonText>, where: string) => Row;
};

const CONTEXT_ROWS: Rows<typeof CONTEXT, ReportedContext> = {
  table: CONTEXT,
  idOf: ({ contextId }) => contextId,
  row: readContext,
};
const WINDOW_ROWS: Rows<typeof WINDOW, ReportedWindow> = {
  table: WINDOW,
  idOf: ({ windowId }) => windowId,
  row: readWindow,
};

function readPart<T extends Table, Row>(
  where: string,
  json: JsonText | undefined,
  rows: Rows<T, Row>,
): ReportPart<Row> | null {
  if (isLeftOut(json)) return null;
  const members = objectOf(where, json);
  const snapshot = readFlag(`${where}.snapshot`, members.get('snapshot'));
  const set = listOf(`${where}.set`, members.get('set')).map((item, i) => readRow(`${where}.set[${i}]`, item, rows));
  const removed = listOf(`${where}.removed`, members.get('removed')).map((item, i) =>
    readId(`${where}.removed[${i}]`, item),
  );
  if (snapshot && removed.length > 0) invalid(`${where}.removed`, 'a snapshot removes all that it does not set');
  const ids = [...set.map(rows.idOf), ...removed];
  const twice = ids.find((id, i) => ids.indexOf(id) !== i);
  if (twice !== undefined) invalid(where, `${twice} stands there twice`);
  return { snapshot, set, removed };
}

function readRow<T extends Table, Row>(where: string, item: JsonText, { table, row }: Rows<T, Row>): Row {
  const value: unknown = JSON.parse(item);
  const fault = rowFault(table, value);
  if (fault !== null) throw faultAt(where, fault);
  return row(value as Fields<T>, membersOf(item), where);
}

/** Treats one item that was sent alone as a request of its own, so that its refusal becomes a problem response. */
import { getNamedType, getNullableType, isListType, isObjectType } from 'graphql';
import { isCode } from '../protocol/codes.ts';
import { findPlace, type Body } from './body.ts';
import type { ReportFault } from './directive.ts';
import { isRecord } from '../core/json.ts';
import type { OperationSource } from './inputs.ts';
import type { Explained } from './problem.ts';
import { fieldsOf, scopeOf } from './selection.ts';

/**
 * Where an answer holds refusals. `list`: the path in the body to the list of items. `member`: the member of an item
 * that holds its refusal, or null if the item was accepted.
 */
export type ItemRefusal = { readonly list: readonly string[]; readonly member: string };

const NEEDED = ['code', 'message'];

/**
 * Finds where the answer of an operation lists refused items, as its directive `itemRefusal` says. Returns null if
 * there is no such directive or no body. Reports a fault and returns null if the path does not fit the document.
 */
export function findItemRefusal(source: OperationSource, body: Body | null, report: ReportFault): ItemRefusal | null {
  const { itemRefusal, bodyAs } = source.directive;
  if (itemRefusal === null || body === null) return null;
  const list = itemRefusal.slice(0, -1);
  const member = itemRefusal.at(-1) ?? '';
  const scope = scopeOf(source.schema, source.document);
  const place = findPlace(source, [...body.path, ...list], scope);
  const item = place && isListType(getNullableType(place.type)) ? getNamedType(place.type) : null;
  const sets = place?.nodes.map(({ selectionSet }) => selectionSet) ?? [];
  const nodes = isObjectType(item) ? fieldsOf(scope, item, sets).get(member) : undefined;
  const field = isObjectType(item) ? item.getFields()[nodes?.[0]?.name.value ?? ''] : undefined;
  const refusal = field && getNamedType(field.type);
  const fields = isObjectType(refusal)
    ? fieldsOf(scope, refusal, nodes?.map(({ selectionSet }) => selectionSet) ?? [])
    : new Map();
  const fits = NEEDED.every((name) => fields.has(name));
  if (!fits) report(`itemRefusal: "${itemRefusal.join('.')}" names no member of a list's items with code and message`);
  if (bodyAs === null) report('itemRefusal needs bodyAs');
  return fits && bodyAs !== null ? { list, member } : null;
}

/** Returns the refusal of the only item of an answer; null when the item was not refused. */
export function onlyItemRefusal({ list, member }: ItemRefusal, body: unknown): Explained | null {
  let items = body;
  for (const name of list) items = isRecord(items) ? items[name] : null;
  const [only] = Array.isArray(items) ? items : [];
  const refusal: unknown = isRecord(only) ? only[member] : null;
  if (!isRecord(refusal)) return null;
  const { code, message, errors } = refusal;
  return {
    code: isCode(code) ? code : 'internal',
    detail: String(message),
    ...(Array.isArray(errors) && { errors }),
  };
}

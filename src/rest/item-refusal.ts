/** Treats one item that was sent alone as a request of its own, so that its refusal becomes a problem response. */
import { getNullableType, isListType } from 'graphql';
import { isRecord } from '../core/json.ts';
import { isCode } from '../protocol/codes.ts';
import type { ReportFault } from './directive.ts';
import type { OperationSource } from './inputs.ts';
import type { Explained } from './problem.ts';
import { findPlace, VARIANT_MEMBERS, type Body } from './response-body.ts';
import { scopeOf } from './selection-shape.ts';

/** `list`: the path in the body to the list of items. `member`: the member of an item with its refusal or null. */
export type ItemRefusal = { readonly list: readonly string[]; readonly member: string };

/**
 * Finds where the answer of an operation lists refused items, as the argument `itemRefusal` of its `@rest` directive
 * says. Returns null if there is no such argument or no body. Reports a fault and returns null if the path does not fit
 * the document, or without `bodyAs`.
 */
export function findItemRefusal(source: OperationSource, body: Body | null, report: ReportFault): ItemRefusal | null {
  const { itemRefusal, bodyAs } = source.directive;
  if (itemRefusal === null || body === null) return null;
  const list = itemRefusal.slice(0, -1);
  const member = itemRefusal.at(-1) ?? '';
  const scope = scopeOf(source, report);
  const path = [...body.path, ...list];
  const place = findPlace(scope, path);
  const isList = place !== null && isListType(getNullableType(place.type));
  const fits = isList && VARIANT_MEMBERS.refusal.every((name) => findPlace(scope, [...path, member, name], true));
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

/** Answers a request that sends one item instead of a list: if the item is refused, the response is a problem. */
import { getNullableType, isListType } from 'graphql';
import { isRecord } from '../core/json.ts';
import { isCode } from '../protocol/codes.ts';
import type { ReportFault } from './directive.ts';
import type { OperationSource } from './inputs.ts';
import type { ProblemDetails } from './problem.ts';
import { findPlace, VARIANT_MEMBERS, type Body } from './response-body.ts';
import { scopeOf } from './selection-shape.ts';

/**
 * Where the answer has the refusals of items. `list`: the path in the body to the list of items. `member`: the name of
 * the member in which an item has its refusal or null.
 */
export type ItemRefusal = { readonly list: readonly string[]; readonly member: string };

/**
 * Finds where the answer of an operation has refused items, from the argument `itemRefusal` of its `@rest` directive.
 * Null if there is no such argument or no body. If the path does not fit the document, or there is no `bodyAs`, reports
 * a fault and returns null.
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

/** Returns the refusal of the single item in an answer; null if the item was not refused. */
export function onlyItemRefusal({ list, member }: ItemRefusal, body: unknown): ProblemDetails | null {
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

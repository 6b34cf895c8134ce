import { trustJson, type JsonText } from '../../core/json.ts';
import type { Reply } from './types.ts';

/** The fields of a hash: as a script answers them, name and value in turn, or as a plain HGETALL does through the client. */
export type Fields = Reply | Readonly<Record<string, string>>;

/** A reply that is a list; empty where it is none. */
export function listOf(reply: Fields | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : [];
}

/** A payload as it was given to an act; null where there is none. */
export function jsonOr(reply: Fields | undefined): JsonText | null {
  return typeof reply === 'string' ? trustJson(reply) : null;
}

/** A hash's fields by name. Empty where there was nothing. */
export function fieldsOf(fields: Fields): ReadonlyMap<string, string> {
  if (fields === null || typeof fields !== 'object') return new Map();
  if (!Array.isArray(fields)) return new Map(Object.entries(fields as Readonly<Record<string, string>>));
  const flat = fields as readonly Reply[];
  const found = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) found.set(String(flat[i]), String(flat[i + 1]));
  return found;
}

/** Converts replies of Redis, whose form TypeScript does not know, to lists, maps and JSON texts. */
import { trustJson, type JsonText } from '../../core/json.ts';
import type { Reply } from './types.ts';

/**
 * The fields of a hash: names and values in turn, as a script returns them, or an object, as the client returns
 * HGETALL.
 */
export type Fields = Reply | Readonly<Record<string, string>>;

/** Returns a reply as a list; empty if it is not a list. */
export function listOf(reply: Fields | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : [];
}

/** Returns a reply that is a payload, as JSON text; null if there is none. */
export function jsonOr(reply: Fields | undefined): JsonText | null {
  return typeof reply === 'string' ? trustJson(reply) : null;
}

/** Returns the fields of a hash by name; empty if there is no hash. */
export function fieldsOf(fields: Fields): ReadonlyMap<string, string> {
  if (fields === null || typeof fields !== 'object') return new Map();
  if (!Array.isArray(fields)) return new Map(Object.entries(fields as Readonly<Record<string, string>>));
  const flat = fields as readonly Reply[];
  const found = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) found.set(String(flat[i]), String(flat[i + 1]));
  return found;
}

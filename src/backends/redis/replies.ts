/** Reads replies of Redis, whose form TypeScript does not know, as lists, maps and JSON texts. */
import { trustJson, type JsonText } from '../../core/json.ts';

/** An answer of Redis: a text, a number, null, or a list of answers. */
export type Reply = string | number | null | readonly Reply[];
export type ReadCommand = readonly [name: string, ...args: readonly (string | number)[]];

/**
 * The fields of a hash: as alternating names and values if a script returned them, or as an object if the client did
 * (HGETALL).
 */
export type Fields = Reply | Readonly<Record<string, string>>;

/** Returns a reply as a list; empty if it is not a list. */
export function listOf(reply: Fields | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : [];
}

/** Returns a reply that is a text; null for any other reply. */
export function textOr(reply: Fields | undefined): string | null {
  return typeof reply === 'string' ? reply : null;
}

/** Returns the number in a reply that is a text; null for any other reply. */
export function numberOr(reply: Fields | undefined): number | null {
  return typeof reply === 'string' ? Number(reply) : null;
}

/** Returns a reply that is a payload, as JSON text; null if there is none. */
export function jsonOr(reply: Fields | undefined): JsonText | null {
  return typeof reply === 'string' ? trustJson(reply) : null;
}

/** Returns the fields of a hash whose values are numbers, such as members with their scores. */
export function numbersOf(fields: Fields | undefined): ReadonlyMap<string, number> {
  return new Map([...fieldsOf(fields)].map(([name, value]) => [name, Number(value)]));
}

/** Returns the fields of a hash by name; empty if there is no hash. */
export function fieldsOf(fields: Fields | undefined): ReadonlyMap<string, string> {
  if (fields === undefined || fields === null || typeof fields !== 'object') return new Map();
  if (!Array.isArray(fields)) return new Map(Object.entries(fields as Readonly<Record<string, string>>));
  const flat = fields as readonly Reply[];
  const found = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) found.set(String(flat[i]), String(flat[i + 1]));
  return found;
}

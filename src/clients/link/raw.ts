/** Wraps JSON text that is sent and received unchanged, for numbers that a double cannot hold. */
import { trustJson } from '../../protocol/json.ts';
import { RawJson } from '../../protocol/json-value.ts';

export type { RawJson };

/**
 * Wraps JSON text so that it is sent unchanged in place of a value. Numbers beyond double precision and the order of
 * members are preserved. The wrapped text must be the whole value: inside another value it is parsed and serialized
 * again. Throws SyntaxError when the text is not JSON.
 */
export function rawJson(text: string): RawJson {
  JSON.parse(text);
  return new RawJson(trustJson(text));
}

/**
 * Returns the text of a RawJson; for any other value, the result of JSON.stringify. Throws what JSON.stringify throws.
 */
export function jsonOf(value: unknown): string | undefined {
  return value instanceof RawJson ? value.text : JSON.stringify(value);
}

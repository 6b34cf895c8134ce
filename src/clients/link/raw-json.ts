/** JSON text in values that a program passes on. */
import { trustJson, type JsonText } from '../../protocol/json.ts';

/** JSON text in the place of a value. */
export class RawJson {
  readonly text: JsonText;

  constructor(text: JsonText) {
    this.text = text;
  }

  /** Inside another value, the text is parsed. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

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

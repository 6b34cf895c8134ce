/** Wraps JSON text, so that it is sent unchanged in place of a value. */
import { trustJson, type JsonText } from '../../protocol/json.ts';

/** JSON text that stands for a value. */
export class RawJson {
  readonly text: JsonText;

  constructor(text: JsonText) {
    this.text = text;
  }

  /** Called if the wrapper is part of another value, which is then serialized with the parsed text. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/**
 * Wraps JSON text so that it is sent unchanged in place of a value. This preserves numbers beyond double precision and
 * the order of members. The text must be the whole value: if the wrapper is part of another value, the text is parsed
 * and serialized again. Throws SyntaxError if the text is not JSON.
 */
export function rawJson(text: string): RawJson {
  JSON.parse(text);
  return new RawJson(trustJson(text));
}

/**
 * Returns the text of a RawJson, and the result of JSON.stringify for any other value. Throws what JSON.stringify
 * throws.
 */
export function jsonOf(value: unknown): string | undefined {
  return value instanceof RawJson ? value.text : JSON.stringify(value);
}

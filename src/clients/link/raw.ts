import { trustJson } from '../../protocol/json.ts';
import { RawJson } from '../../protocol/json-value.ts';

export type { RawJson };

/**
 * JSON text in the place of a value that is sent: it goes out as it is written, with numbers that no double holds and members in their order. It
 * stands for a value as a whole, not inside of one. Throws SyntaxError where the text is no JSON.
 */
export function rawJson(text: string): RawJson {
  JSON.parse(text);
  return new RawJson(trustJson(text));
}

/** As JSON.stringify, and the text of a RawJson. Throws what JSON.stringify throws. */
export function jsonOf(value: unknown): string | undefined {
  return value instanceof RawJson ? value.text : JSON.stringify(value);
}

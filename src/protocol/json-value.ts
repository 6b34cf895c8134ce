/** JSON text in place of a parsed value, and a writer that keeps it unchanged. */
import type { JsonText } from './json.ts';

/**
 * JSON text in the place of a value. `writeJson` writes the text unchanged; JSON.stringify would parse and serialize it
 * again, and so lose digits.
 */
export class RawJson {
  readonly text: JsonText;

  constructor(text: JsonText) {
    this.text = text;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/**
 * Like JSON.stringify, but writes the text of each RawJson unchanged. Undefined for a value that JSON cannot express.
 */
export function writeJson(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map((item: unknown) => writeJson(item) ?? 'null').join(',')}]`;
  if ('toJSON' in value && typeof value.toJSON === 'function') return writeJson(value.toJSON());
  let text = '';
  for (const [name, member] of Object.entries(value)) {
    const written = writeJson(member);
    if (written !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${written}`;
  }
  return `{${text}}`;
}

/** Whether a value is an object with members, as a parsed JSON object is. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const BREAKS = /[\r\n]/;

/**
 * The JSON in one line: each run of line breaks becomes a space. JSON strings contain no raw line breaks, so no value
 * changes.
 */
export function inOneLine(json: string): string {
  return BREAKS.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
}

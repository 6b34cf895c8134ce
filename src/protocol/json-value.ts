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
    if (!found) return JSON.parse(this.text);
    found.push(this.text);
    return PLACEHOLDER;
  }
}

/** The texts of the RawJsons that JSON.stringify has passed, in order; null except while `writeJson` calls it. */
let found: JsonText[] | null = null;
/**
 * The placeholder that JSON.stringify writes for a RawJson. `writeJson` replaces it with the text of the RawJson. The
 * placeholder is random, so no value contains it.
 */
const PLACEHOLDER = crypto.getRandomValues(new Uint32Array(4)).join('-');
const WRITTEN_HOLE = JSON.stringify(PLACEHOLDER);

/**
 * Does the same as JSON.stringify, but writes the text of each RawJson unchanged. Undefined for a value that JSON
 * cannot express.
 */
export function writeJson(value: unknown): string | undefined {
  const around = found;
  const texts: JsonText[] = (found = []);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } finally {
    found = around;
  }
  if (texts.length === 0 || text === undefined) return text;
  return text.split(WRITTEN_HOLE).reduce((before, piece, i) => before + (texts[i - 1] ?? '') + piece);
}

/** Whether a value is an object with members, as a parsed JSON object is. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const BREAKS = /[\r\n]/;

/**
 * Writes JSON in one line: each run of line breaks becomes a space. JSON strings contain no raw line breaks, so no
 * value changes.
 */
export function inOneLine(json: string): string {
  return BREAKS.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
}

/** Serializes values that contain ready JSON text (RawJson), which it copies unchanged. */
import type { JsonText } from './json.ts';

/** JSON text that stands for a value. `writeJson` copies it unchanged; JSON.stringify would lose digits. */
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

/**
 * The texts of the RawJson objects that JSON.stringify has reached, in order. Null unless `writeJson` is calling it.
 */
let found: JsonText[] | null = null;
/**
 * The text that JSON.stringify writes for a RawJson, and that `writeJson` then replaces. It is random, so that no value
 * contains it.
 */
const PLACEHOLDER = /* @__PURE__ */ randomText();

function randomText(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

/** Serializes a value like JSON.stringify, but copies the text of each RawJson unchanged. */
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
  return text.split(`"${PLACEHOLDER}"`).reduce((before, piece, i) => before + (texts[i - 1] ?? '') + piece);
}

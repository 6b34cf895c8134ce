/** Writes values that contain JSON text as it is (RawJson). */
import type { JsonText } from './json.ts';

/** JSON text in the place of a value. `writeJson` leaves it unchanged; JSON.stringify would lose digits. */
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

/** The texts of the RawJsons that JSON.stringify has reached, in order; null except while `writeJson` calls it. */
let found: JsonText[] | null = null;
/** What JSON.stringify writes for a RawJson, and `writeJson` replaces. Random, so that no value contains it. */
const PLACEHOLDER = /* @__PURE__ */ randomText();

function randomText(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

/** Does the same as JSON.stringify, but writes the text of each RawJson unchanged. */
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

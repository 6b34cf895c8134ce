import type { JsonText } from './json.ts';

/** A JSON value that stays as it is written, among values of this program. `writeJson` writes its text; JSON.stringify would write it anew. */
export class RawJson {
  readonly text: JsonText;

  constructor(text: JsonText) {
    this.text = text;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** The text that JSON.stringify gives, with the text of each RawJson in its place. Undefined for what is no JSON value. */
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

const BREAKS = /[\r\n]/;

/** JSON in one line. Outside of its strings, where a line break cannot stand as it is, each becomes a space. */
export function inOneLine(json: string): string {
  return BREAKS.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
}

/**
 * Reads JSON text as a value for the form, and writes the value as JSON text, without losing a digit. A number that a
 * double would spell in another way, such as `12345678901234567890` or `1.50`, is held as a text that begins with MARK.
 * A text of the value that begins with MARK itself gets a second one, so that no text is taken for a number.
 */

/** What a text begins with that is a number. */
const MARK = '\0';

/** Finds the texts and the numbers of a JSON text. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** MARK as JSON writes it, after the quote that begins a text. */
const MARKED = `"${JSON.stringify(MARK).slice(1, -1)}`;
/** MARK in any spelling that JSON allows. */
const IS_MARKED = /^"\\u0000/;

/** Returns JSON text as a value for the form. Throws SyntaxError for a text that is not JSON. */
export function formValueOf(text: string): unknown {
  JSON.parse(text);
  const marked = text.replace(TOKENS, (token) => {
    if (token.startsWith('"')) return IS_MARKED.test(token) ? `${MARKED}${token.slice(1)}` : token;
    return JSON.stringify(formNumberOf(token));
  });
  return JSON.parse(marked);
}

/** Returns the JSON text of a value of the form, with line breaks. */
export function textOfForm(value: unknown): string {
  const marked = JSON.stringify(value, null, 2);
  return marked.replace(TOKENS, (token) => {
    if (!token.startsWith(MARKED)) return token;
    const rest = token.slice(MARKED.length);
    return rest.startsWith(MARKED.slice(1)) ? `"${rest}` : rest.slice(0, -1);
  });
}

/** Returns typed text as the value of a field for numbers: the number, or the text itself if it is no number. */
export function formNumberOf(text: string): string | number {
  if (!NUMBER.test(text)) return text;
  return String(Number(text)) === text ? Number(text) : MARK + text;
}

/** Returns the text that a field for numbers shows for a value, as it was typed. */
export const numberTextOf = (value: unknown): string =>
  isExactNumber(value) ? value.slice(MARK.length) : String(value ?? '');

/** Returns the nearest double for a number that is held as a text, and any other value as it is. */
export const nearestOf = (value: unknown): unknown => (isExactNumber(value) ? Number(value.slice(MARK.length)) : value);

const isExactNumber = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(MARK) && NUMBER.test(value.slice(MARK.length));

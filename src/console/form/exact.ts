/**
 * Converts between JSON text and the value of a form without losing a digit. A number that a double would write
 * differently, such as `12345678901234567890` or `1.50`, is represented by a text that begins with MARK. A text that
 * itself begins with MARK gets a second MARK, so that it is not taken for a number.
 */

/** The first character of a text that represents a number. */
const MARK = '\0';

/** Matches the texts and numbers of a JSON text. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** MARK as JSON writes it, after the opening quote of a text. */
const MARKED = `"${JSON.stringify(MARK).slice(1, -1)}`;
/** Matches a text that begins with MARK, however JSON spells it. */
const IS_MARKED = /^"\\u0000/;

/** Converts JSON text into the value of a form. Throws SyntaxError for a text that is not JSON. */
export function formValueOf(text: string): unknown {
  JSON.parse(text);
  const marked = text.replace(TOKENS, (token) => {
    if (token.startsWith('"')) return IS_MARKED.test(token) ? `${MARKED}${token.slice(1)}` : token;
    return JSON.stringify(formNumberOf(token));
  });
  return JSON.parse(marked);
}

/** Converts the value of a form into JSON text with line breaks. */
export function textOfForm(value: unknown): string {
  const marked = JSON.stringify(value, null, 2);
  return marked.replace(TOKENS, (token) => {
    if (!token.startsWith(MARKED)) return token;
    const rest = token.slice(MARKED.length);
    return rest.startsWith(MARKED.slice(1)) ? `"${rest}` : rest.slice(0, -1);
  });
}

/** Converts typed text into the value of a number field: the number, or the text itself if it is not a number. */
export function formNumberOf(text: string): string | number {
  if (!NUMBER.test(text)) return text;
  return String(Number(text)) === text ? Number(text) : MARK + text;
}

/** Returns the text that a number field shows for a value, as it was typed. */
export const numberTextOf = (value: unknown): string =>
  isExactNumber(value) ? value.slice(MARK.length) : String(value ?? '');

/** Returns the nearest double for a number that is represented by a text, and any other value unchanged. */
export const nearestOf = (value: unknown): unknown => (isExactNumber(value) ? Number(value.slice(MARK.length)) : value);

const isExactNumber = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(MARK) && NUMBER.test(value.slice(MARK.length));

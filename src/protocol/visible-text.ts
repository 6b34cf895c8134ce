/** Makes the hidden characters of a text visible. Clients choose many of the texts that people read. */

/**
 * Matches what steers a terminal, changes the order of the characters around it, or cannot be seen: control characters
 * (C0, DEL, C1), characters that embed, override or isolate a direction, separators of lines and paragraphs, and
 * characters without a glyph. A joiner after one of these, or after a character of ASCII, joins nothing and only hides;
 * elsewhere scripts and emoji need it.
 */
const HIDDEN =
  /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}][\u200c\u200d]*|(?<![^\0-\x7f])[\u200c\u200d]+/gu;
/** Matches texts without hidden characters, as most texts are. It is faster than HIDDEN. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/**
 * Returns the text with each hidden character as its code, such as `\u202e`, one for each UTF-16 unit. Line feeds and
 * tabs stay. JSON text without carriage returns stays JSON of the same value, because only its strings can contain
 * other hidden characters.
 */
export function visibleText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replaceAll(HIDDEN, (found) => found.replaceAll(/[^\n\t]/g, codeOf));
}

/** Returns the text as `visibleText` does, on one line: line feeds and tabs become codes too. */
export function visibleLine(text: string): string {
  return visibleText(text).replaceAll(/[\n\t]/g, codeOf);
}

function codeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Texts of clients. They are shown to models, so each says which client wrote it, and cannot end that statement. */
import { visibleText } from '../protocol/visible-text.ts';

/** Returns a text of a client on one line, with hidden characters as their codes, and at most `most` characters. */
export function clientText(text: string, most: number): string {
  if (text.length <= most && PLAIN_LINE.test(text)) return text;
  // White space first: a line feed could make the rest look like a text of the relay or of another client.
  const line = visibleText(
    text
      .slice(0, 4 * most)
      .toWellFormed()
      .replaceAll(/\s+/g, ' '),
  ).trim();
  return line.length <= most ? line : `${line.slice(0, most - 1).toWellFormed()}…`;
}

/** Matches most texts of clients: words of printable ASCII with a space between two of them. It is faster than the rest. */
const PLAIN_LINE = /^(?:[!-~]+(?: [!-~]+)*)?$/;

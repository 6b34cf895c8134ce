/**
 * Prepares texts of clients for models: on one line, so that a client's text cannot be mistaken for a statement of the
 * relay or of another client.
 */
import { visibleText } from '../protocol/visible-text.ts';

/**
 * Returns a client's text on one line, with hidden characters replaced by their codes, and cut to `most` characters.
 */
export function clientText(text: string, most: number): string {
  if (text.length <= most && PLAIN_LINE.test(text)) return text;
  // White space comes first: after a line feed, the rest could look like a text of the relay or of another client.
  const line = visibleText(
    text
      .slice(0, 4 * most)
      .toWellFormed()
      .replaceAll(/\s+/g, ' '),
  ).trim();
  return line.length <= most ? line : `${line.slice(0, most - 1).toWellFormed()}…`;
}

/**
 * Matches most texts of clients: words of printable ASCII, separated by single spaces. Such a text needs no conversion.
 */
const PLAIN_LINE = /^(?:[!-~]+(?: [!-~]+)*)?$/;

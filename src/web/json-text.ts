/** Assembles the JSON text of an answer. Large parts of it may be bytes that were encoded before. */

/**
 * Pieces of ASCII bytes that a text refers to by their index. A reference is the index between two characters U+0000.
 * JSON text never contains this character.
 */
export type Inserts = readonly Buffer[];

const MARK = '\0';

/** Returns the reference to the insert of this index. */
export function insertMark(index: number): string {
  return MARK + String(index) + MARK;
}

/** Returns the pieces of the text in order: strings, and the inserts that it refers to. */
export function piecesOf(text: string, inserts: Inserts): readonly (string | Buffer)[] {
  return text.split(MARK).map((piece, i) => (i % 2 === 0 ? piece : (inserts[Number(piece)] ?? '')));
}

/** Returns the text with every insert in its place. */
export function wholeText(text: string, inserts: Inserts): string {
  if (inserts.length === 0) return text;
  return piecesOf(text, inserts)
    .map((piece) => (typeof piece === 'string' ? piece : piece.toString('latin1')))
    .join('');
}

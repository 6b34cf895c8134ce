/** Finds files that do not begin with a comment that says what they are for. Readers judge what the comment says. */
import type { SourceFile } from './imports.ts';

/** The folders that are not checked. A tool writes the first comments of generated files. */
const LEFT_OUT = ['generated/'];

const IMPORTS = /^(?:import\b[^;]*;\s*)*/;
const COMMENT = String.raw`(?:\/\*\*(?:[^*]|\*(?!\/))*\*\/|(?:\/\/[^\n]*(?:\n|$))+)`;
/**
 * Matches a comment about the whole file. The code after it is not a constant or type that only the file itself uses.
 */
const OF_THE_FILE = new RegExp(String.raw`^${COMMENT}(?:\s*\n\s*\n|\s*(?:(?:import|export)\b|\/\*\*)|\s*$)`);
const OF_THE_FIRST_EXPORT = new RegExp(String.raw`^${COMMENT}\s*export\b`);

/** Whether a file begins with such a comment, or its imports are followed by an export that has one. */
export function hasFirstComment(text: string): boolean {
  const body = text.replace(/^#!.*\n/, '').trimStart();
  return OF_THE_FILE.test(body) || OF_THE_FIRST_EXPORT.test(body.replace(IMPORTS, ''));
}

/** Returns the files without such a comment. */
export function filesWithoutFirstComment(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path, text }) => !LEFT_OUT.some((folder) => path.startsWith(folder)) && !hasFirstComment(text))
    .map(({ path }) => path);
}

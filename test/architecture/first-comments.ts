/** Finds files that do not begin with a comment that says what they are for. Readers judge what the comment says. */
import type { SourceFile } from './imports.ts';

/** The folders that are not checked. A tool writes the first comments of generated files. */
const LEFT_OUT = ['generated/'];

const IMPORTS = /^(?:import\b[^;]*;\s*)*/;
const COMMENT = String.raw`(?:\/\*\*(?:[^*]|\*(?!\/))*\*\/|(?:\/\/[^\n]*(?:\n|$))+)`;
/**
 * Matches a comment at the beginning of a file. After it comes neither a constant nor a type that only this file uses,
 * because the comment would then be about that.
 */
const OF_THE_FILE = new RegExp(String.raw`^${COMMENT}(?:\s*\n\s*\n|\s*(?:(?:import|export)\b|\/\*\*)|\s*$)`);
const OF_THE_FIRST_EXPORT = new RegExp(String.raw`^${COMMENT}\s*export\b`);

/**
 * Returns whether a file begins with a comment about itself, or its imports are followed by an export that has a
 * comment.
 */
export function hasFirstComment(text: string): boolean {
  const body = text.replace(/^#!.*\n/, '').trimStart();
  return OF_THE_FILE.test(body) || OF_THE_FIRST_EXPORT.test(body.replace(IMPORTS, ''));
}

/** Returns the paths of the files for which `hasFirstComment` is false. */
export function filesWithoutFirstComment(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path, text }) => !LEFT_OUT.some((folder) => path.startsWith(folder)) && !hasFirstComment(text))
    .map(({ path }) => path);
}

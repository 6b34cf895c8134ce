/** Finds files that do not begin with a comment about themselves. What the comment says is not checked. */
import type { SourceFile } from './imports.ts';

const IMPORTS = /^(?:import\b[^;]*;\s*)*/;
const COMMENT = String.raw`(?:\/\*\*(?:[^*]|\*(?!\/))*\*\/|(?:\/\/[^\n]*(?:\n|$))+)`;
/**
 * Matches a first comment that is about its whole file. A comment directly above a constant or a type that is not
 * exported does not match, because it is about that constant or type.
 */
const OF_THE_FILE = new RegExp(String.raw`^${COMMENT}(?:\s*\n\s*\n|\s*(?:(?:import|export)\b|\/\*\*)|\s*$)`);
const OF_THE_FIRST_EXPORT = new RegExp(String.raw`^${COMMENT}\s*export\b`);

/** Returns whether a file has a first comment. It may also stand above the first export, directly after the imports. */
export function hasFirstComment(text: string): boolean {
  const body = text.replace(/^#!.*\n/, '').trimStart();
  return OF_THE_FILE.test(body) || OF_THE_FIRST_EXPORT.test(body.replace(IMPORTS, ''));
}

/** Returns the paths of the files for which `hasFirstComment` is false. */
export function filesWithoutFirstComment(files: readonly SourceFile[]): readonly string[] {
  return files.filter(({ text }) => !hasFirstComment(text)).map(({ path }) => path);
}

/** Lists the settings whose text may come from a file, and reads such files. */
import { readFileSync } from 'node:fs';
import type { InputError } from '../core/errors.ts';
import type { SettingName } from '../settings.ts';

/**
 * The settings whose text may be in a file: `SECRET_FILE` is the path of the file with the text of `SECRET`. These
 * settings contain credentials, which a file keeps out of the environment and of process lists.
 */
export const FILE_SETTINGS: readonly SettingName[] = [
  'ADMIN_TOKEN',
  'SECRET',
  'METRICS_TOKEN',
  'REDIS_URL',
  'AUDIT_KEY',
];

/** The suffix of a variable that names a file. The suffix of the flag is `-file`. */
export const FILE_SUFFIX = '_FILE';

/**
 * Returns the setting whose text comes from the file that the variable `name` names, such as SECRET for `SECRET_FILE`;
 * null if there is none.
 */
export function settingOfFile(name: string): SettingName | null {
  return FILE_SETTINGS.find((setting) => setting + FILE_SUFFIX === name) ?? null;
}

/**
 * Reads the text of a file, without white space at its end. If the file cannot be used, returns the reason, which never
 * quotes the file.
 */
export function readSettingFile(path: string, shownAs: string): { readonly text: string } | InputError {
  try {
    const text = readFileSync(path, 'utf8').trimEnd();
    return text === '' ? { parameter: shownAs, detail: 'the file is empty' } : { text };
  } catch (error) {
    return { parameter: shownAs, detail: `the file cannot be read (${codeOf(error)})` };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}

/** Lists the settings whose text may be in a file, and reads such files. */
import { readFileSync } from 'node:fs';
import type { InputError } from '../core/errors.ts';
import type { SettingName } from '../settings.ts';

/**
 * The settings that a file may contain: `SECRET_FILE` names the file that contains the text of `SECRET`. They are the
 * settings with credentials, which thereby stay out of the environment and of process lists.
 */
export const FILE_SETTINGS: readonly SettingName[] = [
  'ADMIN_TOKEN',
  'SECRET',
  'METRICS_TOKEN',
  'REDIS_URL',
  'AUDIT_KEY',
];

/** The end of the name of a variable that names a file; the flag ends with `-file`. */
export const FILE_SUFFIX = '_FILE';

/**
 * Returns the setting whose text is read from a file by the variable `name`, such as SECRET for `SECRET_FILE`; null if
 * there is none.
 */
export function settingOfFile(name: string): SettingName | null {
  return FILE_SETTINGS.find((setting) => setting + FILE_SUFFIX === name) ?? null;
}

/**
 * Reads the text of a file without white space at its end. Returns the reason if it cannot be used; the reason never
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

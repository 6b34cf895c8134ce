/** Reads the settings of the audit from the configuration. */
import type { InputError } from './core/errors.ts';
import type { SettingName, SettingValues } from './settings.ts';

export type AuditConfig = {
  /** The file of the audit's rows in direct mode; null: they are kept in memory. */
  readonly file: string | null;
  /** The key with which rows are signed; null: a key derived from the secret of tokens. */
  readonly key: string | null;
  /** The keys with which earlier rows were signed. They only verify rows. */
  readonly earlierKeys: readonly string[];
  readonly days: number;
  readonly maxRows: number;
};

export function auditOf(settings: SettingValues): AuditConfig {
  const { AUDIT_FILE: file = null, AUDIT_KEY: keys = [], AUDIT_DAYS: days, AUDIT_MAX_ROWS: maxRows } = settings;
  const [key = null, ...earlierKeys] = keys;
  return { file, key, earlierKeys, days, maxRows };
}

/**
 * Returns a fault if an audit file is set without a key. Rows in a file outlive the process, so the key that signs them
 * must be configured too.
 */
export function auditFaults(
  given: ReadonlyMap<SettingName, unknown>,
  shownAs: (name: SettingName) => string,
): readonly InputError[] {
  if (!given.has('AUDIT_FILE') || given.has('AUDIT_KEY') || given.has('SECRET')) return [];
  return [{ parameter: shownAs('AUDIT_FILE'), detail: 'needs AUDIT_KEY or SECRET, which sign the rows' }];
}

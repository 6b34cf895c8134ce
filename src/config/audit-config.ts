/** Reads the settings of the audit. */
import type { SettingValues } from '../settings.ts';

export type AuditConfig = {
  /** The file of the audit's rows in direct mode; null: they are kept in memory. */
  readonly file: string | null;
  /**
   * The key with which rows are signed; null: a key derived from the secret of tokens, or without a secret the key of
   * cursors.
   */
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

/** Reads the settings of the audit. */
import type { SettingValues } from '../settings.ts';

export type AuditConfig = {
  /** The file of the audit rows in direct mode; null: the rows are kept in memory. */
  readonly file: string | null;
  /**
   * The key with which rows are signed. Null: a key is derived from the secret that signs tokens or, if there is none,
   * the key of cursors is used.
   */
  readonly key: string | null;
  /** The earlier keys. They only verify rows that were signed before. */
  readonly earlierKeys: readonly string[];
  readonly days: number;
  readonly maxRows: number;
};

export function auditOf(settings: SettingValues): AuditConfig {
  const { AUDIT_FILE: file = null, AUDIT_KEY: keys = [], AUDIT_DAYS: days, AUDIT_MAX_ROWS: maxRows } = settings;
  const [key = null, ...earlierKeys] = keys;
  return { file, key, earlierKeys, days, maxRows };
}

/**
 * Opens the stores of a relay that are not part of its backend: the store of large payloads, and the audit file of
 * direct mode. Also derives the keys that sign audit rows.
 */
import { hkdfSync } from 'node:crypto';
import { openAuditFile } from './backends/memory/audit-file.ts';
import { createDirectorySpill } from './backends/spill/directory.ts';
import { createMemorySpill } from './backends/spill/memory.ts';
import type { Settings } from './callboard-settings.ts';
import type { AuditSign } from './core/audit/row.ts';
import type { AuditStore } from './core/audit/store.ts';
import type { AuditBounds } from './core/audit/trail.ts';
import type { Clock } from './core/clock.ts';
import type { Crypto } from './core/crypto.ts';
import type { SpillStore } from './core/history/spill.ts';
import { AUDIT_KEEP_MS, AUDIT_ROWS } from './core/limits.ts';
import type { Log } from './core/log.ts';
import type { Shares } from './core/shares/shares.ts';
import { createCrypto } from './platform/crypto.ts';

export type SpillParts = {
  readonly clock: Clock;
  readonly log: Log;
  readonly crypto: Crypto;
  readonly shares: Shares;
};

export function spillStore(root: string | null, parts: SpillParts): SpillStore {
  return root === null
    ? createMemorySpill(parts.clock, parts.crypto, parts.shares)
    : createDirectorySpill({ root, ...parts });
}

/** Returns the store of the audit in direct mode; undefined if it is kept in memory. */
export function auditStore({ audit }: Settings, log: Log): AuditStore | undefined {
  return audit?.file ? openAuditFile(audit.file, log) : undefined;
}

/**
 * Returns the bounds of the audit and the function that signs its rows. If the audit has no key and there is no secret,
 * `crypto` signs the rows.
 */
export function auditOptions(
  { audit, auth, redis }: Settings,
  { crypto, log }: { readonly crypto: Crypto; readonly log: Log },
): AuditBounds & { readonly sign: AuditSign } {
  const { days, maxRows = AUDIT_ROWS } = audit ?? {};
  const keepMs = days === undefined ? AUDIT_KEEP_MS : days * 24 * 3600_000;
  const [sign] = auditKeys({ audit, auth });
  if (!sign && redis)
    log.warn(
      {},
      'the key of the audit is kept in Redis beside its rows: set AUDIT_KEY to notice rows that are forged there',
    );
  return { keepMs, maxRows, sign: sign ?? crypto.sign };
}

/** Returns the keys with which rows may have been signed, the present one first; empty if none is configured. */
export function auditKeys({ audit, auth }: Pick<Settings, 'audit' | 'auth'>): readonly AuditSign[] {
  const { secret = null, previousSecret = null } = auth;
  const { key = null, earlierKeys = [] } = audit ?? {};
  return [key, ...earlierKeys, secret, previousSecret].filter((text) => text !== null).map(signOf);
}

/**
 * Creates the function that signs rows. Its key is derived from the secret, so that nothing that was signed for another
 * purpose can pass for a row.
 */
function signOf(secret: string): AuditSign {
  const key = hkdfSync('sha256', secret, '', 'callboard audit', 32);
  return createCrypto(new Uint8Array(key)).sign;
}

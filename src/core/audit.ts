import { subjectOf, type Principal } from './auth/principal.ts';
import type { Log } from './log.ts';

/** What is written to the audit log, and its line. */
const DEEDS = {
  payload: 'payload shown to an administrator',
  disconnect: 'a client is disconnected by an administrator',
  drain: 'a node is drained by an administrator',
} as const;

export type AuditedDeed = keyof typeof DEEDS;

/**
 * Writes one audit line: who did what to what. It is written before the deed, so that no deed goes unwritten. `fields` name the subject by
 * its ids, and never hold a payload or a token.
 */
export function audit(
  log: Log,
  who: Principal,
  { deed, ...fields }: { readonly deed: AuditedDeed } & Readonly<Record<string, string | number | null>>,
): void {
  log.info({ audit: deed, who: subjectOf(who), ...fields }, DEEDS[deed]);
}

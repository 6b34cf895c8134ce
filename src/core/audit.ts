/** Writes the audit log: one line for each operation of an administrator, before the operation. */
import { subjectOf, type Principal } from './auth/principal.ts';
import type { Log } from './log.ts';

/** The audited operations by their code, with the message of the log line. */
const AUDIT_MESSAGES = {
  payload: 'an administrator reads a payload',
  disconnect: 'an administrator disconnects a client',
  drain: 'an administrator drains a node',
} as const;

export type AuditedAction = keyof typeof AUDIT_MESSAGES;

/**
 * Writes one audit line: the principal (`requester`), the operation (`action`) and its object. Call it before the operation, so
 * that no operation goes unrecorded. `fields` identify the object by its ids and never hold a payload or a token.
 */
export function audit(
  log: Log,
  requester: Principal,
  { action, ...fields }: { readonly action: AuditedAction } & Readonly<Record<string, string | number | null>>,
): void {
  log.info({ audit: action, requester: subjectOf(requester), ...fields }, AUDIT_MESSAGES[action]);
}

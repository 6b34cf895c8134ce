/** Writes one log line for each action of an administrator, before the action. */
import { subjectOf, type Principal } from '../auth/principal.ts';
import type { Log } from '../ports.ts';
import type { OperatorAction, AuditSubject } from './audit-rows.ts';

/** The message of the log line for each action. */
const AUDIT_MESSAGES: Readonly<Record<OperatorAction, string>> = {
  payload: 'an administrator reads a payload',
  reveal: 'an administrator reveals a payload',
  disconnect: 'an administrator disconnects a client',
  drain: 'an administrator drains a node',
  cancel: 'an administrator cancels a command',
  revoke: 'an administrator revokes tokens',
  enrol: 'an administrator decides whether a device is enrolled',
  rename: 'an administrator renames a device',
  pause: 'calls are paused',
  resume: 'a pause is ended',
};

/**
 * Writes the log line of an action: the principal (`requester`), the action and its subject. `subject` contains ids,
 * and never a payload or a token.
 */
export function logAct(
  log: Log,
  requester: Principal,
  {
    action,
    subject,
    reason,
  }: { readonly action: OperatorAction; readonly subject: AuditSubject; readonly reason: string | null },
): void {
  const told = reason === null ? {} : { reason };
  log.info({ audit: action, requester: subjectOf(requester), ...subject, ...told }, AUDIT_MESSAGES[action]);
}

/** Holds the words for enums of the schema that are not states of commands. */
import type { DisconnectCause, ExecutionEvidence, HeartbeatIndicator, WaitStage } from '../../generated/console.ts';

export const CAUSE: Readonly<Record<DisconnectCause, string>> = {
  BACK_PRESSURE: 'it read too slowly',
  CLIENT_CLOSED: 'the client closed it',
  ERROR: 'its socket failed',
  HEARTBEAT_LOST: 'the client stopped answering',
  LOST: 'its socket ended without a close',
  NODE_DRAINED: 'its node was drained',
  NODE_LOST: 'its node was lost',
  OPERATOR: 'an operator closed it',
  PROTOCOL_ERROR: 'the client broke the protocol',
  REPLACED: 'another instance took its place',
  RESET: 'its socket was reset',
  TOKEN_EXPIRED: 'its token expired',
};

export const HEARTBEAT: Readonly<Record<HeartbeatIndicator, string>> = {
  OK: 'Answers in time',
  LATE: 'Answers late',
  MISSED: 'Does not answer',
};

export const EXECUTION: Readonly<Record<ExecutionEvidence, string>> = {
  MAY_HAVE_RUN: 'May have run',
  NOT_WRITTEN: 'Did not run: it was never written to a client',
  REFUSED_BY_CLIENT: 'Did not run: the client refused it',
  REPORTED_BY_CLIENT: 'Ran, as the client reported',
};

export const WAIT_FOR: Readonly<Record<WaitStage, string>> = {
  ADMITTED: 'admission',
  ACKNOWLEDGED: 'receipt by the client',
  COMPLETED: 'the end',
};

/** Sentences for the reasons with which commands end. */
const REASONS: Readonly<Record<string, string>> = {
  action_not_advertised: 'The client does not offer this action',
  approval_denied: 'Client refused: approval denied',
  arguments_invalid: 'Client refused: the arguments do not fit its schema',
  cancelled: 'Cancelled by its caller or an operator',
  capacity_exceeded: 'The scope had no room',
  client_denied: 'Client refused: its own rules deny it',
  client_timeout: 'The client gave up within its own time',
  connect_timeout: 'Client did not connect in time',
  draining: 'The node was being drained',
  handler_failed: 'The handler of the client failed',
  instance_mismatch: 'Another instance of the client was connected',
  instance_replaced: 'Another instance of the client took over',
  lease_busy: 'Client refused: the place is in use',
  node_lost: 'The node that held it was lost',
  not_connected: 'The client was not connected',
  queue_timeout: 'It waited in the queue until its deadline',
  response_timeout: 'No answer came before the deadline',
  result_unavailable: 'The result could not be kept',
  runtime_disconnected: 'The client disconnected while it ran',
  unknown_action: 'The client does not know the action',
};

/** Matches the reason that the relay writes for a cancellation: `cancelled by user:alice`. */
const CANCELLED_BY = /^cancelled by (user|admin):(.+)$/;

/** Returns a sentence for a reason; the text itself for a reason that the console does not know. */
export function reasonText(code: string): string {
  const [, kind, name] = CANCELLED_BY.exec(code) ?? [];
  if (name !== undefined) return `Cancelled by ${kind === 'user' ? 'user' : 'administrator'} ${name}`;
  return REASONS[code.toLowerCase()] ?? code;
}

/** Writes `OUTCOME_UNKNOWN` as `outcome unknown`. */
export function plainWord(name: string): string {
  return name.toLowerCase().replaceAll('_', ' ');
}

/** Writes `USER_OWNED` as `User owned`. */
export function capitalWord(name: string): string {
  return sentenceCase(plainWord(name));
}

/** Returns the text with a capital at its beginning. */
export function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

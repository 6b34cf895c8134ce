/** Says in words why a command ended, for people who read its record in the console or on the command line. */

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

/** Returns the words for a reason; a reason without words is returned unchanged. */
export function reasonText(code: string): string {
  const [, kind, name] = CANCELLED_BY.exec(code) ?? [];
  if (name !== undefined) return `Cancelled by ${kind === 'user' ? 'user' : 'administrator'} ${name}`;
  return REASONS[code.toLowerCase()] ?? code;
}

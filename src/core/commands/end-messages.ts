/** The error messages of commands that end without a report from their client. */
import type { Code } from '../errors.ts';

/** The message of each error code, the same in every backend. A code without an entry is its own message. */
export const END_MESSAGES: Partial<Record<Code, string>> = {
  connect_timeout: 'The client did not connect in time; nothing was written to it.',
  queue_timeout: 'The command was not dispatched before its deadline; nothing was written to the client.',
  response_timeout: 'The client reported no end before the deadline; the command may have run.',
  instance_replaced: 'Another instance of the client took over.',
  context_gone: 'The context that the call names is gone; nothing was written to the client.',
  context_unsupported: 'The call names a context, which the client does not know; nothing was written to it.',
  node_lost: 'The node that held the link was lost.',
  store_lost: 'The store lost data that it had confirmed.',
  paused: 'A pause began before the command was written to the client; nothing ran.',
  not_received: 'The command was lost on its way to the client, which says that it never arrived; nothing ran.',
};

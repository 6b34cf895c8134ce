import type { Code } from '../errors.ts';

/** What is said of an end that no client reported, the same by every backend. A code without words stands for itself. */
export const END_WORDS: Partial<Record<Code, string>> = {
  connect_timeout: 'The client did not connect in time; nothing was written to it.',
  queue_timeout: 'The command was not dispatched before its deadline; nothing was written to the client.',
  response_timeout: 'No answer came before the deadline; the command may have run.',
  instance_replaced: 'Another instance of the client took over.',
  node_lost: 'The node that held the link was lost.',
  store_lost: 'The store lost what it held.',
};

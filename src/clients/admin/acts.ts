/** Implements the methods of Admin that change something: cancel, disconnect and drain. */
import * as documents from '../../generated/admin.ts';
import { AdminError } from './errors.ts';
import { createQueryRunner } from './query.ts';
import type { AdminActs, AdminOptions } from './types.ts';

type Refusal = Extract<documents.CancelMutation['cancelCommand'], { readonly __typename: 'Refusal' }>;

export function createActs(options: AdminOptions): AdminActs {
  const send = createQueryRunner(options);
  // A repeated disconnect could close the new link of a client that has already reconnected.
  const sendOnce = createQueryRunner({ ...options, retries: 0 });
  return {
    cancel: async (input) => receiptOf((await send(documents.CancelDocument, { input })).cancelCommand),
    disconnect: async (client) => receiptOf((await sendOnce(documents.DisconnectDocument, client)).disconnectClient),
    drain: async (node) => (await send(documents.DrainDocument, node)).drainNode,
  };
}

/** Returns the receipt in an answer. Throws AdminError for a refusal. */
function receiptOf<Receipt extends { readonly __typename: string }>(answer: Receipt | Refusal): Receipt {
  if (!isRefusal(answer)) return answer;
  const { code, message, retryAfterMs } = answer;
  throw new AdminError(code.toLowerCase(), message, { status: 200, retryAfterMs });
}

function isRefusal(answer: { readonly __typename: string }): answer is Refusal {
  return answer.__typename === 'Refusal';
}

import type { Cluster, Redis } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';

export type Client = Redis | Cluster;
/** What Redis answers: texts, numbers, null and lists of such. */
export type Reply = string | number | null | readonly Reply[];
export type ReadCommand = readonly [name: string, ...args: readonly (string | number)[]];
/** The node that acts, under the epoch that it was given in this partition. */
export type Identity = { readonly nodeId: string; readonly epoch: number };
/** Why a call was not taken: the node's epoch is over, or the store forgot what it had confirmed. */
export type Verdict = 'FENCED' | 'LOST';

/**
 * What Redis or the way to it said, for the log; for the requester, `store_full` where Redis has no memory left (it refuses a call whole, before
 * it runs), else `store_unavailable`.
 */
export function unavailable(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  if (cause instanceof Error && cause.message.startsWith('OOM'))
    return new CallboardError('store_full', 'The store has no room for more.', { cause, retryAfterMs: 1000 });
  return new CallboardError('store_unavailable', 'The store does not answer.', { cause, retryAfterMs: 1000 });
}

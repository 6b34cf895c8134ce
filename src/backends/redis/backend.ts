import type { Backend } from '../../core/backend.ts';
import type { Log } from '../../core/log.ts';
import type { Client } from './wire.ts';
import type { Store } from './store.ts';

/** What every room over Redis is made of. */
export type RedisParts = {
  readonly store: Store;
  readonly log: Log;
  readonly sha256: (text: string) => string;
  /** A connection of its own, of the same kind as the store's: for blocking reads and for subscriptions. Whoever takes it closes it. */
  readonly connect: (purpose: 'mailbox' | 'bus') => Client;
  /** How long history keeps a message, milliseconds, and how many of a stream. */
  readonly retentionMs: number;
  readonly streamMessages: number;
  /** How long a node counts as alive after a beat, milliseconds. */
  readonly leaseMs: number;
};

/** The rooms that stand over Redis. */
export function createRedisRooms(_parts: RedisParts): Partial<Backend> {
  return { capabilities: { shared: true, exactDedupCounters: true, cheapStreamSummaries: true } };
}

import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { HeldCommands } from './commands/held.ts';
import type { Client } from './types.ts';
import type { Store } from './store/store.ts';

/** What every room over Redis is made of. */
export type RedisParts = {
  readonly store: Store;
  readonly log: Log;
  readonly sha256: (text: string) => string;
  /** Timers of this machine. */
  readonly system: Clock;
  /** A connection of its own, of the same kind as the store's: for blocking reads and for subscriptions. Whoever takes it closes it. */
  readonly connect: (purpose: 'mailbox' | 'bus') => Client;
  /** How long history keeps a message, milliseconds, and how many of a stream. */
  readonly retentionMs: number;
  readonly streamMessages: number;
  /** How long an ended command's record is kept, milliseconds; TERMINAL_MS where absent. */
  readonly idempotencyWindowMs?: number | undefined;
  /** Streams of one user at most; STREAMS_PER_USER where absent. */
  readonly streamsPerUser?: number | undefined;
  /** How long a node counts as alive after a beat, milliseconds. */
  readonly leaseMs: number;
  /** Live commands that this process knows; of the commands alone where absent. */
  readonly held?: HeldCommands | undefined;
};

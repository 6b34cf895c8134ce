import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { HeldCommands } from './commands/held.ts';
import type { OwnEnds } from './commands/own-ends.ts';
import type { Client } from './types.ts';
import type { Store } from './store/store.ts';

/** The parts that the rooms over Redis share. */
export type RedisParts = {
  readonly store: Store;
  readonly log: Log;
  readonly sha256: (text: string) => string;
  /** Timers of this machine. */
  readonly system: Clock;
  /** Opens a separate connection of the same kind as the store's, for blocking reads or subscriptions. The caller closes it. */
  readonly connect: (purpose: 'mailbox' | 'bus') => Client;
  /** Whether acts and subscriptions reach the same server, as they do without a cluster; default false. */
  readonly oneServer?: boolean | undefined;
  /** How long history keeps a message, milliseconds, and how many of a stream. */
  readonly retentionMs: number;
  readonly streamMessages: number;
  /** How long an ended command's record is kept, milliseconds; default TERMINAL_MS. */
  readonly idempotencyWindowMs?: number | undefined;
  /** Streams of one user at most; default STREAMS_PER_USER. */
  readonly streamsPerUser?: number | undefined;
  /** Rows of one user's link history at most; LINK_MESSAGES where absent. */
  readonly linkMessages?: number | undefined;
  /** How long a node counts as alive after a beat, milliseconds. */
  readonly leaseMs: number;
  /** Live commands whose records this process knows; default: separate ones for each room. */
  readonly held?: HeldCommands | undefined;
  /** Ends that this process recorded; default: separate ones for each room. */
  readonly ownEnds?: OwnEnds | undefined;
};

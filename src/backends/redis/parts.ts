/** The dependencies and limits that all stores of the Redis backend share. */
import type { Clock, Log } from '../../core/ports.ts';
import type { ShareBounds } from '../../core/shares/shares.ts';
import type { HeldCommands } from './commands/entry.ts';
import type { Transactions } from './commands/transactions.ts';
import type { Client } from './types.ts';
import type { Store } from './store.ts';
import type { LocalWaits } from './waiters-local.ts';

export type RedisParts = {
  readonly store: Store;
  readonly log: Log;
  readonly sha256: (text: string) => string;
  /** Timers of this machine. */
  readonly system: Clock;
  /**
   * Opens a separate connection of the same kind as the store's, for blocking reads or subscriptions. The caller closes
   * it.
   */
  readonly connect: (purpose: 'mailbox' | 'bus') => Client;
  /** Whether acts and subscriptions reach the same server, as they do without a cluster; default false. */
  readonly oneServer?: boolean | undefined;
  /** How long history keeps a message, milliseconds. */
  readonly retentionMs: number;
  /** The most messages of a stream. */
  readonly streamMessages: number;
  /** How long an ended command's record is kept, milliseconds; default TERMINAL_MS. */
  readonly idempotencyWindowMs?: number | undefined;
  /** The most streams of one user; default STREAMS_PER_USER. */
  readonly streamsPerUser?: number | undefined;
  /** The most rows of one user's link history; default LINK_MESSAGES. */
  readonly linkMessages?: number | undefined;
  /** The bounds of shares; default SHARE_BOUNDS. */
  readonly bounds?: ShareBounds | undefined;
  /** How long a node counts as alive after a beat, milliseconds. */
  readonly leaseMs: number;
  /** The cache of live commands' records; by default each store creates its own. */
  readonly held?: HeldCommands | undefined;
  /** The clock of the store. */
  readonly clock: Pick<Clock, 'now'>;
  /** Runs the acts on commands; by default each store creates its own. */
  readonly transactions?: Transactions | undefined;
  /** Whether Redis decides each act of a call on its own, as if another had failed. For tests. */
  readonly careful?: boolean | undefined;
  /** The waits of this process's callers; by default each store creates its own list. */
  readonly waits?: LocalWaits | undefined;
};

/**
 * What all stores of the Redis backend share: their dependencies and limits, and what the stores of commands and
 * waiters have besides.
 */
import { silentMetrics, type Metrics } from '../../core/metrics.ts';
import type { Clock, Log } from '../../core/ports.ts';
import type { ShareBounds } from '../../core/shares/share-bounds.ts';
import { createHeldCommands, type HeldCommands } from './commands/record.ts';
import { createTransactions, type Transactions } from './commands/transactions.ts';
import type { Client } from './client.ts';
import type { Store } from './store.ts';
import { createLocalWaits, type LocalWaits } from './waiters-local.ts';
import type { CommandKey } from '../../core/ids.ts';
import { LINK_MESSAGES, STREAMS_PER_USER, TERMINAL_MS } from '../../core/limits.ts';

export type RedisDeps = {
  readonly store: Store;
  readonly log: Log;
  /** Counts what is dropped for lack of room; by default nothing is counted. */
  readonly metrics?: Metrics | undefined;
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

export type CommandDeps = {
  readonly store: Store;
  /** How long an ended command's record is kept, milliseconds. */
  readonly windowMs: number;
  /** How long results are shown at most, milliseconds. */
  readonly retentionMs: number;
  readonly held: HeldCommands;
  readonly waits: LocalWaits;
  readonly transactions: Transactions;
};

/** Completes the dependencies of the stores of commands and waiters. All stores of a process share these parts. */
export function commandDeps(deps: RedisDeps): CommandDeps {
  const { store, retentionMs, idempotencyWindowMs: windowMs = TERMINAL_MS, bounds, careful = false } = deps;
  const { held = createHeldCommands(), waits = createLocalWaits() } = deps;
  const { streamsPerUser = STREAMS_PER_USER, linkMessages = LINK_MESSAGES, metrics = silentMetrics } = deps;
  const settings = { ...deps, windowMs, bounds, streamsPerUser, linkMessages, careful, metrics };
  return {
    store,
    windowMs,
    retentionMs,
    held,
    waits,
    transactions: deps.transactions ?? createTransactions(settings),
  };
}

/** Returns the arguments that name a command: the hash of its client, its id, and the hash of its user. */
export function nameArgs(
  store: Pick<Store, 'hash'>,
  { userId, clientId, commandId }: CommandKey,
): readonly [client: string, commandId: string, user: string] {
  return [store.hash(userId, clientId), commandId, store.hash(userId)];
}

/** The dependencies and limits that all stores of the Redis backend share. */
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
  /** Counts rows that are dropped for lack of room. By default they are not counted. */
  readonly metrics?: Metrics | undefined;
  readonly sha256: (text: string) => string;
  /** The timers of this machine. */
  readonly system: Clock;
  /** Opens another connection to the same Redis, for blocking reads or subscriptions. The caller closes it. */
  readonly connect: (purpose: 'mailbox' | 'bus') => Client;
  /** Whether acts and subscriptions use the same Redis server, as they do without a cluster. Default: false. */
  readonly oneServer?: boolean | undefined;
  /** How long history keeps a message, in milliseconds. */
  readonly retentionMs: number;
  /** The most messages of a stream. */
  readonly streamMessages: number;
  /** How long the record of an ended command is kept, in milliseconds. Default: TERMINAL_MS. */
  readonly idempotencyWindowMs?: number | undefined;
  /** The most streams of one user. Default: STREAMS_PER_USER. */
  readonly streamsPerUser?: number | undefined;
  /** The most rows of one user's link history. Default: LINK_MESSAGES. */
  readonly linkMessages?: number | undefined;
  /** The limits of shares. Default: SHARE_BOUNDS. */
  readonly bounds?: ShareBounds | undefined;
  /** How long a node counts as alive after a heartbeat, in milliseconds. */
  readonly leaseMs: number;
  /** The cache of the records of live commands. By default each store creates its own. */
  readonly held?: HeldCommands | undefined;
  /** The clock of the store. */
  readonly clock: Pick<Clock, 'now'>;
  /** Runs the acts on commands. By default each store creates its own. */
  readonly transactions?: Transactions | undefined;
  /**
   * If true, Redis decides each act of a call separately, as it does after an act of the call has failed. For tests.
   */
  readonly careful?: boolean | undefined;
  /** The waits of this process's callers. By default each store creates its own list. */
  readonly waits?: LocalWaits | undefined;
};

export type CommandDeps = {
  readonly store: Store;
  /** How long the record of an ended command is kept, in milliseconds. */
  readonly windowMs: number;
  /** How long a result is shown at most, in milliseconds. */
  readonly retentionMs: number;
  readonly held: HeldCommands;
  readonly waits: LocalWaits;
  readonly transactions: Transactions;
};

/**
 * Fills in the dependencies of the stores of commands and waiters. Call it once for all stores of a process, so that
 * they share these objects.
 */
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

/** Returns the arguments that identify a command: the hash of its client, its id, and the hash of its user. */
export function nameArgs(
  store: Pick<Store, 'hash'>,
  { userId, clientId, commandId }: CommandKey,
): readonly [client: string, commandId: string, user: string] {
  return [store.hash(userId, clientId), commandId, store.hash(userId)];
}

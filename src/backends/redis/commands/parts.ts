/** What the Redis files for commands share: their dependencies, and the names of a command in arguments. */
import type { CommandKey } from '../../../core/ids.ts';
import { LINK_MESSAGES, STREAMS_PER_USER, TERMINAL_MS } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import type { Store } from '../store.ts';
import { createLocalWaits, type LocalWaits } from '../waiters-local.ts';
import { createHeldCommands, type HeldCommands } from './entry.ts';
import { createTransactions, type Transactions } from './transactions.ts';

export type CommandParts = {
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
export function commandParts(parts: RedisParts): CommandParts {
  const { store, retentionMs, idempotencyWindowMs: windowMs = TERMINAL_MS, bounds, careful = false } = parts;
  const { held = createHeldCommands(), waits = createLocalWaits() } = parts;
  const { streamsPerUser = STREAMS_PER_USER, linkMessages = LINK_MESSAGES } = parts;
  const settings = { ...parts, windowMs, bounds, streamsPerUser, linkMessages, careful };
  return {
    store,
    windowMs,
    retentionMs,
    held,
    waits,
    transactions: parts.transactions ?? createTransactions(settings),
  };
}

/** Returns the arguments that name a command: the hash of its client, its id, and the hash of its user. */
export function nameArgs(
  store: Pick<Store, 'hash'>,
  { userId, clientId, commandId }: CommandKey,
): readonly [client: string, commandId: string, user: string] {
  return [store.hash(userId, clientId), commandId, store.hash(userId)];
}

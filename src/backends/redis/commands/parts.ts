/**
 * What the Redis files for commands share: their dependencies, and how a command and a payload become Lua arguments.
 */
import { END_MESSAGES } from '../../../core/commands/command.ts';
import type { StoredPayload } from '../../../core/history/message.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { TERMINAL_MS } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import { boundsOfPartition } from '../shares.ts';
import { createHeldCommands, type HeldCommands } from './held.ts';
import type { Store } from '../store.ts';
import { createLocalWaits, type LocalWaits } from '../waiters-local.ts';

/**
 * The settings that Lua reads with `commands_use` (commands-records.lua), as JSON. `rows` is passed to acts that retain a
 * row of history. `ends` is passed to acts that may end a command for a reason of their own. It also has the messages
 * that such an end shows.
 */
export type CommandSettings = { readonly rows: string; readonly ends: string };

export type CommandParts = {
  readonly store: Store;
  readonly sha256: (text: string) => string;
  readonly settings: CommandSettings;
  /** How long an ended command's record is kept, milliseconds. */
  readonly windowMs: number;
  /** How long results are shown at most, milliseconds. */
  readonly retentionMs: number;
  readonly held: HeldCommands;
  readonly waits: LocalWaits;
};

export function commandParts(parts: RedisParts): CommandParts {
  const {
    store,
    sha256,
    retentionMs,
    streamMessages,
    streamsPerUser,
    idempotencyWindowMs: windowMs = TERMINAL_MS,
    held = createHeldCommands(),
    bounds,
    waits = createLocalWaits(),
  } = parts;
  const shares = boundsOfPartition(store, bounds);
  const rows = { retentionMs, streamMessages, streamsPerUser, terminalMs: windowMs, shares };
  const ends = { ...rows, words: END_MESSAGES };
  return {
    store,
    sha256,
    windowMs,
    retentionMs,
    held,
    waits,
    settings: { rows: JSON.stringify(rows), ends: JSON.stringify(ends) },
  };
}

/** Returns the arguments that name a command: the hash of its client, its id, and the hash of its user. */
export function nameArgs(
  store: Pick<Store, 'hash'>,
  { userId, clientId, commandId }: CommandKey,
): readonly [client: string, commandId: string, user: string] {
  return [store.hash(userId, clientId), commandId, store.hash(userId)];
}

/** Returns a history row's payload as arguments: its text, its reference in the spill store, and its bytes there. */
export function keptArgs(kept: StoredPayload | null): readonly (string | number | null)[] {
  const spill = kept?.spill ?? null;
  return [kept?.payload ?? null, spill && JSON.stringify(spill), spill && spill.bytes];
}

import { END_MESSAGES } from '../../../core/delivery/end-messages.ts';
import type { StoredPayload } from '../../../core/history/message.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { TERMINAL_MS } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import { createHeldCommands, type HeldCommands } from './held.ts';
import type { Store } from '../store/store.ts';

/** What the program's `commands_use` takes: each act that may retain a row or end a command is given it. `ends` has the words of the ends. */
export type CommandSettings = { readonly rows: string; readonly ends: string };

export type CommandParts = {
  readonly store: Store;
  readonly sha256: (text: string) => string;
  readonly settings: CommandSettings;
  /** How long an ended command's record is kept, milliseconds. */
  readonly windowMs: number;
  readonly held: HeldCommands;
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
  } = parts;
  const rows = { retentionMs, streamMessages, streamsPerUser, terminalMs: windowMs };
  const ends = { ...rows, words: END_MESSAGES };
  return { store, sha256, windowMs, held, settings: { rows: JSON.stringify(rows), ends: JSON.stringify(ends) } };
}

/** How an act is told of a command: the hash of its client, its id, and the hash of its user. */
export function nameArgs(
  store: Pick<Store, 'hash'>,
  { userId, clientId, commandId }: CommandKey,
): readonly [client: string, commandId: string, user: string] {
  return [store.hash(userId, clientId), commandId, store.hash(userId)];
}

/** A payload of a history row as arguments: its text, where it lies, and of how many bytes it is there. */
export function keptArgs(kept: StoredPayload | null): readonly (string | number | null)[] {
  const spill = kept?.spill ?? null;
  return [kept?.payload ?? null, spill && JSON.stringify(spill), spill && spill.bytes];
}

/**
 * The API of delivery: command records, their live updates, the state of nodes and scopes, and an operator's actions.
 */
import type { Requester } from '../auth/principal.ts';
import { readUserInSight, seenActions, seesAction } from '../auth/sight.ts';
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import { id, within, type ClientKey, type CommandKey } from '../ids.ts';
import { ADMITTED_WITHIN_MS } from '../limits.ts';
import type { Subscription } from '../live.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { holderOf } from '../shares/holder.ts';
import { watch, type CommandUpdate } from './command-updates.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import { commandEvents, type CommandEventQuery } from './event-access.ts';
import { createInspection } from './inspection.ts';
import { createOperatorActions } from './operator-actions.ts';
import type { CommandLoad } from './command-store.ts';

/** Creates the API that core offers as `core.delivery`. */
export function createDeliveries(deps: Deps, dispatcher: Dispatcher) {
  const { commands } = deps.backend;
  const many = (requester: Requester, keys: readonly CommandKey[]): MaybePromise<readonly (Command | null)[]> => {
    const sight = seenActions(requester);
    const rows = commands.get(keys);
    if (sight.actions === undefined) return rows;
    return thenDo(rows, (found) => found.map((row) => (row && seesAction(sight, row.action) ? row : null)));
  };
  const command = async (requester: Requester, key: CommandKey): Promise<Command | null> => {
    const own = ownKey(requester, key);
    return own ? ((await many(requester, [own]))[0] ?? null) : null;
  };
  return {
    ...createInspection(deps),
    ...createOperatorActions(deps),
    /** Returns the record of a command. Null if there is no such command, or if the requester may not see it. */
    command,
    /**
     * Returns one record per key, in order; null if there is none, or if the requester's token does not include its
     * action.
     */
    many,
    /** Returns the recorded result. Does not authorize: the caller must have authorized the request. */
    result: (key: CommandKey) => commands.result(key),
    /**
     * Emits the current state first, and ends after the terminal state. Null if there is no such command, or if it
     * belongs to another user. With `admittedWithinMs`, a command that does not exist yet is awaited for this time, so
     * that a caller can subscribe before it invokes; after this time the sequence fails with `not_found`. A command of
     * another user looks like one that does not exist. The wait counts in the requester's share `waits`: throws
     * `share_exceeded` or `store_full` if the share has no room.
     */
    async updates(
      requester: Requester,
      key: CommandKey,
      admittedWithinMs?: number | null,
    ): Promise<Subscription<CommandUpdate> | null> {
      const withinMs = within('admitted_within_ms', admittedWithinMs, ADMITTED_WITHIN_MS);
      const own = ownKey(requester, key);
      const sight = seenActions(requester);
      if (withinMs === 0) return own && (await many(requester, [own]))[0] ? watch(deps, own, sight) : null;
      return watch(deps, own, sight, { withinMs, holdings: deps.shares.of(holderOf(requester)) });
    },
    /** Returns the live feed of command events that the requester may see. See `commandEvents`. */
    events: (requester: Requester, query: CommandEventQuery) => commandEvents(deps, requester, query),
    /** Counts the live commands of each of these clients, over all nodes. Does not authorize. */
    loads: (keys: readonly ClientKey[]) => commands.loads(keys),
    /** Counts the commands that are queued or in flight on the links of this node. */
    nodeLoad: (): CommandLoad => dispatcher.load,
  };
}

/**
 * Returns the key with the canonical user id; null if the command belongs to another user. Does not check the command's
 * action: that check needs the record.
 */
export function ownKey(requester: Requester, key: CommandKey): CommandKey | null {
  try {
    const userId = readUserInSight(requester, key.userId);
    return { userId, clientId: id('client_id', key.clientId), commandId: id('command_id', key.commandId) };
  } catch (error) {
    if (error instanceof CallboardError && error.code === 'not_found') return null;
    throw error;
  }
}

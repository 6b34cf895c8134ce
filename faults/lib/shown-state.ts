/** Reads the visible state of a backend, so that two backends can be compared. */
import type { Backend } from '../../src/core/backend.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type { RebindResult } from '../../src/core/commands/command-store.ts';
import { commandKeyText, type ClientKey, type CommandKey } from '../../src/core/ids.ts';
import { SHARE_NAMES, type ShareName } from '../../src/core/shares/share-bounds.ts';
import type { Shares } from '../../src/core/shares/shares.ts';

const PAGE = { first: 1000, after: null } as const;
const ANY_MESSAGE = { afterTime: null, beforeTime: null, kinds: null };

/** The users, clients and commands whose state is read. */
export type Shown = {
  readonly users: readonly string[];
  readonly clients: readonly ClientKey[];
  readonly keys: readonly CommandKey[];
};

/** Returns the state of commands, history, sites, sessions and connections as a backend shows it. */
export async function shownState(
  { commands, inspector, history, sites, sessions, nodes, connections }: Omit<Backend, 'ready' | 'close'>,
  { users, clients, keys }: Shown,
): Promise<object> {
  const listed = (await inspector.list(ANY_COMMAND, PAGE)).rows.map(({ row }) => row);
  const newest = (await inspector.list(ANY_COMMAND, { ...PAGE, order: 'newest' })).rows.map(({ row }) => row.commandId);
  const streams = [];
  for (const userId of users) {
    const { rows, gaps } = await history.streams(userId, null, PAGE);
    streams.push(gaps);
    for (const suffix of [...rows.map(({ row }) => row.suffix), 'links']) {
      const found = await history.messages(userId, suffix, ANY_MESSAGE, PAGE);
      streams.push([suffix, found?.rows.map(({ row }) => row) ?? null, found?.gaps]);
    }
  }
  return {
    listed,
    newest,
    results: await Promise.all(listed.map((command) => commands.result(command))),
    marks: await Promise.all(keys.map((key) => commands.mark(key))),
    live: await Promise.all(clients.map(async (key) => (await commands.live(key)).map(commandKeyText).sort())),
    loads: await commands.loads(clients),
    scopes: (await inspector.scopes(PAGE)).rows.map(({ row }) => [row.scopeId, row.reservedCommands]),
    due: (await nodes.due(1000)).map(commandKeyText).sort(),
    streams,
    sites: (await sites.list(null, PAGE)).rows.map(({ row }) => row),
    sessions: (await sessions.list({ userId: 'alice', siteId: 's1' }, PAGE)).rows.map(({ row }) => row),
    connections: (await connections.get(clients)).map(comparable),
  };
}

/**
 * The shares whose amounts a data directory stores. Amounts that a process holds for its links and callers are not
 * stored.
 */
export const KEPT_SHARES = ['result_bytes', 'ended_records', 'history_bytes', 'marks', 'dedup_marks'] as const;

/** Returns the amounts that users hold of these shares. */
export function shownHoldings(
  held: Shares,
  users: readonly string[],
  shares: readonly ShareName[] = SHARE_NAMES,
): readonly unknown[] {
  return users.map((userId) => shares.map((share) => [userId, share, held.of(userId).held(share)]));
}

/**
 * Returns an answer without parts that may differ: objects that were created before a restart are other objects after
 * it, and a last heartbeat is newer.
 */
export function comparable(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  // Sorted, because no caller depends on the order of a link's commands.
  if ('unfinished' in value) {
    const { unfinished, orphaned } = value as RebindResult;
    return { ...value, unfinished: unfinished.toSorted(byKey), orphaned: orphaned.toSorted(byKey) };
  }
  if ('lastSeenAt' in value) return { ...value, lastSeenAt: null };
  if ('connection' in value && 'previous' in value)
    return { ...value, connection: comparable(value.connection), previous: comparable(value.previous) };
  return value;
}

function byKey(a: CommandKey, b: CommandKey): number {
  return commandKeyText(a) < commandKeyText(b) ? -1 : 1;
}

/** Lists commands that match a filter, in the order of names or of admission. Changes no command. */
import type { Connection } from '../../../core/connections/connection.ts';
import { hasLabels } from '../../../core/connections/labels.ts';
import type { Command } from '../../../core/delivery/command.ts';
import { matchesRecord, type DeliveryFilter, type DeliveryInspector } from '../../../core/delivery/inspector.ts';
import { clientKeyText, type ClientKey } from '../../../core/ids.ts';
import type { MaybePromise } from '../../../core/maybe-promise.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import { getCommands } from '../commands/get.ts';
import type { RedisParts } from '../parts.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import { listNewest, type CommandListing, type MatchesAll } from './newest.ts';

/** The number of names that a filtered listing reads at once. */
const STEP = 1000;

export type InspectorListParts = Pick<RedisParts, 'store' | 'retentionMs' | 'idempotencyWindowMs'> & {
  /** Reads the connections of clients as they are now, one answer per key. */
  readonly connections: (keys: readonly ClientKey[]) => MaybePromise<readonly (Connection | null)[]>;
};

/** Creates the listing of commands. Each page reads names from an index, in order, then the records of these names. */
export function createInspectorList(parts: InspectorListParts): DeliveryInspector['list'] {
  return (filter, page) => {
    const matches: MatchesAll = (commands) => matching(parts, filter, commands);
    const listing = { filter, page, matches };
    return page.order === 'newest' ? listNewest(parts, listing) : listByKey(parts, listing);
  };
}

async function listByKey(parts: InspectorListParts, { filter, page, matches }: CommandListing): Promise<Scan<Command>> {
  const { store } = parts;
  const { userId, clientId, ...others } = filter;
  const filtered = Object.values(others).some((value) => value !== null) || (userId === null && clientId !== null);
  const step = filtered ? STEP : page.first + 1;
  const rows: { row: Command; position: Position }[] = [];
  let scanned = 0;
  let last = page.after;
  for (;;) {
    const names = await namesAfter(store, filter, { first: step, after: last });
    const commands = await getCommands(parts, names.map(keyOfName));
    const kept = await matches(commands);
    for (const [i, name] of names.entries()) {
      if (rows.length === page.first) return { rows, next: last, gaps: [] };
      if (scanned === SCAN_BUDGET) return { rows, next: last, gaps: [], cut: true };
      scanned++;
      last = name.split('\0');
      const command = commands[i];
      if (command && kept[i]) rows.push({ row: command, position: last });
    }
    if (names.length < step) return { rows, next: null, gaps: [] };
  }
}

/** Reads the next names of commands of one client, of one user or of all, merged over the partitions. */
async function namesAfter(
  store: Store,
  { userId, clientId }: DeliveryFilter,
  page: PageRequest,
): Promise<readonly string[]> {
  const all = userId === null ? [...Array(store.partitions).keys()] : [store.partitionOfUser(userId)];
  const whose = userId === null ? [null, null, null] : [userId, store.hash(userId), clientId];
  const args = [...whose, ...(page.after ?? [null, null, null]), page.first];
  const found = await Promise.all(
    all.map(async (partition) => listOf(await store.act(partition, 'inspector-names', args))),
  );
  const names = found.flat().map((name) => ({ name: String(name), bytes: Buffer.from(String(name)) }));
  names.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  return names.slice(0, page.first).map(({ name }) => name);
}

function keyOfName(name: string): { userId: string; clientId: string; commandId: string } {
  const [userId = '', clientId = '', commandId = ''] = name.split('\0');
  return { userId, clientId, commandId };
}

/** Says for each command whether it exists and matches. Reads connections only if the filter has labels. */
async function matching(
  { connections }: InspectorListParts,
  filter: DeliveryFilter,
  commands: readonly (Command | null)[],
): Promise<readonly boolean[]> {
  const { labels } = filter;
  const found = commands.map((command) => (command && matchesRecord(filter, command) ? command : null));
  if (labels === null) return found.map((command) => command !== null);
  const clients = new Map(found.flatMap((command) => (command ? [[clientKeyText(command), command] as const] : [])));
  const rows = await connections([...clients.values()]);
  const labelled = new Set([...clients.keys()].filter((_, i) => hasLabels(rows[i] ?? null, labels)));
  return found.map((command) => command !== null && labelled.has(clientKeyText(command)));
}

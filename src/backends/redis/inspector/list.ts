/** Lists commands that match a filter, in the order of names or of admission. Changes no command. */
import type { Connection } from '../../../core/connections/connection.ts';
import { hasLabels } from '../../../core/connections/labels.ts';
import type { Command } from '../../../core/delivery/command.ts';
import { matchesRecord, type DeliveryFilter, type DeliveryInspector } from '../../../core/delivery/inspector.ts';
import { clientKeyText, type ClientKey } from '../../../core/ids.ts';
import type { MaybePromise } from '../../../core/maybe-promise.ts';
import type { PageRequest } from '../../../core/page.ts';
import { readMatching } from '../commands/get.ts';
import type { RedisParts } from '../parts.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import { fillPage, testOf } from './fill.ts';
import { listNewest, type KeepMatching } from './newest.ts';

export type InspectorListParts = Pick<RedisParts, 'store' | 'retentionMs' | 'idempotencyWindowMs'> & {
  /** Reads the connections of clients as they are now, one answer per key. */
  readonly connections: (keys: readonly ClientKey[]) => MaybePromise<readonly (Connection | null)[]>;
};

/** Creates the listing of commands. Each page reads names from an index, in order, then the records of these names. */
export function createInspectorList(parts: InspectorListParts): DeliveryInspector['list'] {
  return (filter, page) => {
    const keep: KeepMatching = (commands) => matching(parts, filter, commands);
    if (page.order === 'newest') return listNewest(parts, { filter, page, keep });
    const { userId, clientId, ...others } = filter;
    const test = testOf(filter);
    return fillPage(
      {
        names: (part) => namesAfter(parts.store, filter, part),
        positionOf: (name) => name.split('\0'),
        commands: async (names) => keep(await readMatching(parts, names.map(keyOfName), test)),
        plain: Object.values(others).every((value) => value === null) && (userId !== null || clientId === null),
      },
      page,
    );
  };
}

/** Reads the next names of commands of one client, of one user or of all, merged over the partitions. */
async function namesAfter(
  store: Store,
  { userId, clientId }: DeliveryFilter,
  page: Pick<PageRequest, 'first' | 'after'>,
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

/** Returns the commands, null for those that do not match. Reads connections only if the filter has labels. */
async function matching(
  { connections }: InspectorListParts,
  filter: DeliveryFilter,
  commands: readonly (Command | null)[],
): Promise<readonly (Command | null)[]> {
  const { labels } = filter;
  const found = commands.map((command) => (command && matchesRecord(filter, command) ? command : null));
  if (labels === null) return found;
  const clients = new Map(found.flatMap((command) => (command ? [[clientKeyText(command), command] as const] : [])));
  const rows = await connections([...clients.values()]);
  const labelled = new Set([...clients.keys()].filter((_, i) => hasLabels(rows[i] ?? null, labels)));
  return found.map((command) => (command && labelled.has(clientKeyText(command)) ? command : null));
}

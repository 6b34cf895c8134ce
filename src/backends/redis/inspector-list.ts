/** Lists the commands that match a filter, sorted by name or by time of admission. */
import type { Command } from '../../core/commands/command.ts';
import { matchesRecord } from '../../core/commands/lookup.ts';
import type { CommandPage, DeliveryFilter, DeliveryInspector } from '../../core/commands/delivery-inspector.ts';
import type { ObservedSource } from '../../core/completeness.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { hasLabels } from '../../core/connections/labels.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Scan } from '../../core/page.ts';
import { namesAfter, readMatching } from './commands/get.ts';
import { listNewest, type KeepMatching } from './inspector-newest.ts';
import { fillPage, keyOfName, testOf } from './inspector-pages.ts';
import type { RedisDeps } from './deps.ts';
import { partitionsOf } from './store-partitions.ts';

/**
 * Returns the gap of a listing if records of ended commands, of this user or of any, were reduced to marks within their
 * window.
 */
async function gapsOf(
  { store, clock }: Pick<RedisDeps, 'store' | 'clock'>,
  { userId, stage }: DeliveryFilter,
): Promise<readonly ObservedSource[]> {
  // Only records of ended commands are reduced, so a listing of live commands is complete.
  if (stage !== null && stage !== 'terminal') return [];
  const part = userId === null ? undefined : store.hash(userId);
  const found = await Promise.all(
    partitionsOf(store, userId).map((partition) =>
      store.read([['HGET', store.key(partition, 'reduced', part), 'until']]),
    ),
  );
  const now = clock.now();
  if (found.flat().every((until) => Number(until ?? 0) <= now)) return [];
  const gap = { source: 'delivery', nodeId: null, observed: 0, limit: null, reason: 'evicted' } as const;
  return [{ ...gap, complete: false, asOf: now }];
}

export type InspectorListDeps = Pick<RedisDeps, 'store' | 'clock' | 'retentionMs' | 'idempotencyWindowMs'> & {
  /** Reads the current connections of clients, one answer per key. */
  readonly connections: (keys: readonly ClientKey[]) => MaybePromise<readonly (Connection | null)[]>;
};

/**
 * Creates the listing of commands. Each page reads names from an index, in order, and then the records with these
 * names.
 */
export function createInspectorList(deps: InspectorListDeps): DeliveryInspector['list'] {
  return async (filter, page) => {
    const [scan, gaps] = await Promise.all([listMatching(deps, filter, page), gapsOf(deps, filter)]);
    return { ...scan, gaps };
  };
}

function listMatching(deps: InspectorListDeps, filter: DeliveryFilter, page: CommandPage): Promise<Scan<Command>> {
  const keep: KeepMatching = (commands) => matching(deps, filter, commands);
  if (page.order === 'newest') return listNewest(deps, { filter, page, keep });
  const { userId, clientId, ...others } = filter;
  const test = testOf(filter);
  return fillPage(
    {
      names: (part) => namesAfter(deps.store, filter, part),
      positionOf: (name) => name.split('\0'),
      commands: async (names) => keep(await readMatching(deps, names.map(keyOfName), test)),
      plain: Object.values(others).every((value) => value === null) && (userId !== null || clientId === null),
    },
    page,
  );
}

/** Returns the commands, with null for those that do not match. Reads connections only if the filter has labels. */
async function matching(
  { connections }: InspectorListDeps,
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

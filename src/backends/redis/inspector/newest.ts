/** Lists commands in the order of admission, latest first. Changes nothing. */
import type { Command } from '../../../core/delivery/command.ts';
import type { DeliveryFilter } from '../../../core/delivery/inspector.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS, TERMINAL_MS } from '../../../core/limits.ts';
import type { PageRequest, Scan } from '../../../core/page.ts';
import { readNamed, type CommandName, type RecordTest } from '../commands/get.ts';
import type { RedisParts } from '../parts.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import { fillPage, testOf } from './fill.ts';

/** The length of a hash in a name, in characters. */
const HASH = 22;
/**
 * The longest time from a command's admission to its end, milliseconds. After that, its record is kept for the
 * idempotency window.
 */
const LIFE_MS = CONNECT_WITHIN_MS.max + RESPOND_WITHIN_MS.max + 60_000;

/** A command in the index by admission. `name`: its user's hash, its client's hash and its id as one text. */
type Admitted = { readonly partition: number; readonly name: string; readonly at: number };

type NewestParts = Pick<RedisParts, 'store' | 'retentionMs' | 'idempotencyWindowMs'>;
/** Returns the commands in order, null for those that do not match the filter. */
export type KeepMatching = (commands: readonly (Command | null)[]) => Promise<readonly (Command | null)[]>;

type Request = { readonly filter: DeliveryFilter; readonly page: PageRequest; readonly keep: KeepMatching };

/** Reads one page. A position is a time of admission and a name. */
export function listNewest(parts: NewestParts, { filter, page, keep }: Request): Promise<Scan<Command>> {
  const prefix = prefixOf(parts.store, filter);
  const test = testOf(filter);
  return fillPage(
    {
      names: (part) => admittedAfter(parts, filter, part),
      positionOf: ({ at, name }) => [String(at), name],
      async commands(found) {
        const wanted = found.filter(({ name }) => name.startsWith(prefix));
        const kept = await keep(await recordsOf(parts, wanted, test));
        const shown = new Map(wanted.map((one, i) => [one, kept[i] ?? null]));
        return found.map((one) => shown.get(one) ?? null);
      },
      // The index has the commands of all users.
      plain: false,
    },
    page,
  );
}

/** Returns the text with which the names of the wanted commands begin; '' if the filter has no user. */
function prefixOf(store: Store, { userId, clientId }: DeliveryFilter): string {
  if (userId === null) return '';
  return store.hash(userId) + (clientId === null ? '' : store.hash(userId, clientId));
}

/** Reads the next names of commands, merged over the partitions. */
async function admittedAfter(
  { store, idempotencyWindowMs = TERMINAL_MS }: NewestParts,
  { userId, admittedAfter: after, admittedBefore: before }: DeliveryFilter,
  page: Pick<PageRequest, 'first' | 'after'>,
): Promise<readonly Admitted[]> {
  const all = userId === null ? [...Array(store.partitions).keys()] : [store.partitionOfUser(userId)];
  const bounds = [after === null ? null : Math.floor(after), before === null ? null : Math.ceil(before)];
  const args = [page.first, ...(page.after ?? [null, null]), idempotencyWindowMs + LIFE_MS, ...bounds];
  const found = await Promise.all(
    all.map(async (partition) => {
      const flat = listOf(await store.act(partition, 'inspector-newest', args));
      return Array.from({ length: flat.length / 2 }, (_, i): Admitted => {
        return { partition, name: String(flat[2 * i]), at: Number(flat[2 * i + 1]) };
      });
    }),
  );
  const merged = found.flat();
  // Names are ASCII, so this is the order of their bytes.
  merged.sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1));
  return merged.slice(0, page.first);
}

/**
 * Reads the records of these commands; null if a record is gone, fails the test, or has an id that was
 * admitted again since.
 */
async function recordsOf(
  parts: NewestParts,
  found: readonly Admitted[],
  test: RecordTest,
): Promise<readonly (Command | null)[]> {
  const records = new Map<Admitted, Command | null>();
  const read = async (partition: number, some: readonly Admitted[]): Promise<void> => {
    const names = some.map(({ name }) => nameOf(name));
    const commands = await readNamed(parts, partition, names, test);
    some.forEach((one, i) => {
      const command = commands[i] ?? null;
      records.set(one, command?.admittedAt === one.at ? command : null);
    });
  };
  await Promise.all([...Map.groupBy(found, ({ partition }) => partition)].map(([p, some]) => read(p, some)));
  return found.map((one) => records.get(one) ?? null);
}

function nameOf(name: string): CommandName {
  return [name.slice(HASH, 2 * HASH), name.slice(2 * HASH), name.slice(0, HASH)];
}

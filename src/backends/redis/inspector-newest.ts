/** Lists commands by time of admission, latest first. */
import type { Command } from '../../core/commands/command.ts';
import type { DeliveryFilter } from '../../core/commands/delivery-inspector.ts';
import { CONNECT_WITHIN_MS, OWN_COMMANDS, RESPOND_WITHIN_MS, TERMINAL_MS } from '../../core/limits.ts';
import type { PageRequest, Scan } from '../../core/page.ts';
import { namesAfter, readMatching, readNamed, type CommandName, type RecordTest } from './commands/get.ts';
import { fillPage, keyOfName, testOf } from './inspector-pages.ts';
import type { RedisDeps } from './deps.ts';
import { numbersOf } from './replies.ts';
import { partitionsOf } from './store-partitions.ts';
import type { Store } from './store.ts';

/** The length of a hash in the name of a command, in characters. */
const HASH = 22;
/**
 * The longest time from a command's admission to its end, in milliseconds. Its record is kept for the idempotency
 * window after the end.
 */
const LIFE_MS = CONNECT_WITHIN_MS.max + RESPOND_WITHIN_MS.max + 60_000;

/** A command in the index by time of admission. `name`: its user's hash, its client's hash and its id as one text. */
type Admitted = { readonly partition: number; readonly name: string; readonly at: number };

type NewestDeps = Pick<RedisDeps, 'store' | 'clock' | 'retentionMs' | 'idempotencyWindowMs'>;
/** Returns the commands, in order, with null for those that do not match the filter. */
export type KeepMatching = (commands: readonly (Command | null)[]) => Promise<readonly (Command | null)[]>;

type Request = { readonly filter: DeliveryFilter; readonly page: PageRequest; readonly keep: KeepMatching };

/** Reads one page. A position consists of a time of admission and a name, in both ways of reading. */
export async function listNewest(deps: NewestDeps, request: Request): Promise<Scan<Command>> {
  return (await listFew(deps, request)) ?? listAmongAll(deps, request);
}

/**
 * Reads one page of the commands of a user or client if there are at most OWN_COMMANDS of them; otherwise returns null.
 */
async function listFew(deps: NewestDeps, { filter, page, keep }: Request): Promise<Scan<Command> | null> {
  const { userId } = filter;
  if (userId === null) return null;
  const { store } = deps;
  page.reading?.check();
  const names = await namesAfter(store, filter, { first: OWN_COMMANDS + 1, after: null });
  if (names.length > OWN_COMMANDS) return null;
  page.reading?.check();
  page.reading?.countScanned(names.length);
  const found = await keep(await readMatching(deps, names.map(keyOfName), testOf(filter)));
  const [time = '', after = ''] = page.after ?? [];
  const later = found
    .filter((row) => row !== null)
    .map((row) => ({ row, name: store.hash(userId) + store.hash(userId, row.clientId) + row.commandId }))
    .filter(({ row, name }) => {
      return page.after === null || row.admittedAt < Number(time) || (row.admittedAt === Number(time) && name < after);
    })
    .sort((a, b) => b.row.admittedAt - a.row.admittedAt || (a.name < b.name ? 1 : -1));
  const rows = later.slice(0, page.first).map(({ row, name }) => ({ row, position: [String(row.admittedAt), name] }));
  return { rows, next: later.length > rows.length ? (rows.at(-1)?.position ?? null) : null, gaps: [] };
}

function listAmongAll(deps: NewestDeps, { filter, page, keep }: Request): Promise<Scan<Command>> {
  const prefix = prefixOf(deps.store, filter);
  const test = testOf(filter);
  return fillPage(
    {
      names: (part) => admittedAfter(deps, filter, part),
      positionOf: ({ at, name }) => [String(at), name],
      async commands(found) {
        const wanted = found.filter(({ name }) => name.startsWith(prefix));
        const kept = await keep(await recordsOf(deps, wanted, test));
        const shown = new Map(wanted.map((one, i) => [one, kept[i] ?? null]));
        return found.map((one) => shown.get(one) ?? null);
      },
      // The index contains the commands of all users, so names may not match.
      plain: false,
    },
    page,
  );
}

/** Returns the prefix of the names of the wanted commands; '' if the filter names no user. */
function prefixOf(store: Store, { userId, clientId }: DeliveryFilter): string {
  if (userId === null) return '';
  return store.hash(userId) + (clientId === null ? '' : store.hash(userId, clientId));
}

/** The length of the time span of one key of the index, in milliseconds (see lib-newest). */
const HOUR_MS = 3_600_000;
/** How far the time of an admission may be ahead of this process's clock, in milliseconds. */
const AHEAD_MS = 1_000;

/** Reads the next names of commands, merged over the partitions. Some of the commands may no longer exist. */
async function admittedAfter(
  { store, clock, idempotencyWindowMs = TERMINAL_MS }: NewestDeps,
  { userId, admittedAfter: after, admittedBefore: before }: DeliveryFilter,
  { first, after: last }: Pick<PageRequest, 'first' | 'after'>,
): Promise<readonly Admitted[]> {
  const now = clock.now();
  const bounds = {
    oldest: Math.max(now - idempotencyWindowMs - LIFE_MS, after === null ? 0 : Math.floor(after) + 1),
    newest: Math.min(last ? Number(last[0]) : now + AHEAD_MS, before === null ? Infinity : Math.ceil(before) - 1),
  };
  const found = await Promise.all(
    partitionsOf(store, userId).map(async (partition) => {
      const names: Admitted[] = [];
      for await (const { name, at } of admittedIn(store, partition, { ...bounds, step: first })) {
        // The names of the last millisecond are read again, so those up to the last name are skipped.
        if (last && at === Number(last[0]) && name >= (last[1] ?? '')) continue;
        names.push({ partition, name, at });
        if (names.length === first) break;
      }
      return names;
    }),
  );
  const merged = found.flat();
  // Names are ASCII, so this compares their bytes.
  merged.sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1));
  return merged.slice(0, first);
}

type Span = { readonly newest: number; readonly oldest: number; readonly step: number };

/** Reads the names of a partition's commands that were admitted in a span of time, latest first. */
async function* admittedIn(store: Store, partition: number, { newest, oldest, step }: Span) {
  for (let hour = newest - (newest % HOUR_MS); hour + HOUR_MS > oldest; hour -= HOUR_MS) {
    const index = store.key(partition, 'admitted', String(hour));
    for (let from = 0, more = true; more; from += step) {
      const bounds = [newest, oldest, 'BYSCORE', 'REV', 'LIMIT', from, step, 'WITHSCORES'];
      const [reply] = await store.read([['ZRANGE', index, ...bounds]]);
      const rows = numbersOf(reply);
      for (const [name, at] of rows) yield { name, at };
      more = rows.size === step;
    }
  }
}

/**
 * Reads the records of these commands. Null for a record that no longer exists or fails the test, and for a command
 * whose id was admitted again since.
 */
async function recordsOf(
  deps: NewestDeps,
  found: readonly Admitted[],
  test: RecordTest,
): Promise<readonly (Command | null)[]> {
  const records = new Map<Admitted, Command | null>();
  const read = async (partition: number, some: readonly Admitted[]): Promise<void> => {
    const names = some.map(({ name }) => nameOf(name));
    const commands = await readNamed(deps, partition, names, test);
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

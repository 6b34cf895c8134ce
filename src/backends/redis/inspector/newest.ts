/** Lists commands in the order of admission, latest first. Changes nothing. */
import type { Command } from '../../../core/delivery/command.ts';
import type { DeliveryFilter } from '../../../core/delivery/inspector.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS, TERMINAL_MS } from '../../../core/limits.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import { getNamed, type CommandName } from '../commands/get.ts';
import type { RedisParts } from '../parts.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';

/** The number of names that a filtered listing reads at once. */
const STEP = 1000;
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
/** Says for each command, in order, whether it matches the filter. */
export type MatchesAll = (commands: readonly (Command | null)[]) => Promise<readonly boolean[]>;

/** A request for a page of commands. */
export type CommandListing = {
  readonly filter: DeliveryFilter;
  readonly page: PageRequest;
  readonly matches: MatchesAll;
};

/** Reads one page. A position is a time of admission and a name. */
export async function listNewest(
  parts: NewestParts,
  { filter, page, matches }: CommandListing,
): Promise<Scan<Command>> {
  const { store } = parts;
  const prefix = prefixOf(store, filter);
  const rows: { row: Command; position: Position }[] = [];
  let scanned = 0;
  let last = page.after;
  for (;;) {
    const found = await admittedAfter(parts, filter, { first: STEP, after: last });
    const wanted = found.filter(({ name }) => name.startsWith(prefix));
    const commands = await recordsOf(parts, wanted);
    const kept = await matches(commands);
    const shown = new Map(wanted.map((one, i) => [one, kept[i] ? commands[i] : null]));
    for (const one of found) {
      if (rows.length === page.first) return { rows, next: last, gaps: [] };
      if (scanned === SCAN_BUDGET) return { rows, next: last, gaps: [], cut: true };
      scanned++;
      last = [String(one.at), one.name];
      const row = shown.get(one);
      if (row) rows.push({ row, position: last });
    }
    if (found.length < STEP) return { rows, next: null, gaps: [] };
  }
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
  page: PageRequest,
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

/** Reads the records of these commands; null if a record is gone, or its id was admitted again since. */
async function recordsOf(parts: NewestParts, found: readonly Admitted[]): Promise<readonly (Command | null)[]> {
  const records = new Map<Admitted, Command | null>();
  const read = async (partition: number, some: readonly Admitted[]): Promise<void> => {
    const commands = await getNamed(
      parts,
      partition,
      some.map(({ name }) => nameOf(name)),
    );
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

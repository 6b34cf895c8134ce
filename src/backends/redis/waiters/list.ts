/** Lists and counts the waits of callers that match a filter, merged over the partitions. Changes nothing. */
import type { PendingWait, WaiterFilter, WaiterStore } from '../../../core/delivery/waiters.ts';
import { COUNT_SCAN } from '../../../core/limits.ts';
import { SCAN_BUDGET, type PageRequest, type Scan } from '../../../core/page.ts';
import type { KeyKind } from '../keys.ts';
import type { Store } from '../store/store.ts';
import { readPlaces, type Place } from './rows.ts';
import type { Reply } from '../types.ts';

/** The most rows that one act reads. Such an act takes about 2 ms. */
const STRETCH = 500;

/** An index of waits: either those of one user, or all of a partition. */
type Index = { readonly partition: number; readonly kind: KeyKind; readonly hash: string | null };

/**
 * The places that a search found in one partition for a page. `to`: the place at which the search stopped; null if it
 * reached the end of the index.
 */
type Found = { readonly partition: number; readonly places: readonly Place[]; readonly to: Place | null };

type Tally = Awaited<ReturnType<WaiterStore['countByNode']>>;

/** Returns the indexes of all waits that may match a filter. */
export function indexesOf(store: Store, { userId }: WaiterFilter): readonly Index[] {
  if (userId === null)
    return Array.from({ length: store.partitions }, (_, partition) => ({ partition, kind: 'waits', hash: null }));
  const partition = store.partitionOfUser(userId);
  return [{ partition, kind: 'userwaits', hash: store.hash(userId) }];
}

export async function listWaits(store: Store, filter: WaiterFilter, page: PageRequest): Promise<Scan<PendingWait>> {
  const found = await Promise.all(indexesOf(store, filter).map((index) => find(store, index, { filter, page })));
  // After the earliest place at which a search ended, that partition may have rows that were not read yet.
  const bound = found.reduce<Place | null>((least, { to }) => lesser(least, to), null);
  const places = found
    .flatMap((one) => one.places.map((place) => ({ place, partition: one.partition })))
    .filter(({ place }) => bound === null || place <= bound)
    .sort((a, b) => (a.place < b.place ? -1 : 1));
  const taken = places.slice(0, page.first);
  const rows = await readMerged(store, taken);
  const last = places.length > page.first ? (taken.at(-1)?.place ?? null) : bound;
  return { rows, next: last === null ? null : [last], gaps: [] };
}

/** Counts the waits that match a filter, by node. Reads at most COUNT_SCAN rows. */
export async function tallyWaits(store: Store, filter: WaiterFilter): Promise<Tally> {
  const indexes = indexesOf(store, filter);
  const tallies = await Promise.all(
    indexes.map((index) => tally(store, index, { filter, budget: Math.ceil(COUNT_SCAN / indexes.length) })),
  );
  const counts = new Map<string | null, number>();
  for (const one of tallies) for (const [node, count] of one.counts) counts.set(node, (counts.get(node) ?? 0) + count);
  return { counts, complete: tallies.every(({ complete }) => complete) };
}

/** Searches one index until it found one place more than the page returns, or its budget is used up. */
async function find(
  store: Store,
  index: Index,
  { filter, page }: { readonly filter: WaiterFilter; readonly page: PageRequest },
): Promise<Found> {
  const { partition } = index;
  const places: Place[] = [];
  let to: Place | null = page.after?.[0] ?? null;
  const wanted = page.first + 1;
  for (let looked = 0; looked < SCAN_BUDGET; looked += STRETCH) {
    const args = [index.kind, index.hash, to, wanted - places.length, STRETCH, filter.minAgeMs, ...restOf(filter)];
    const reply = await store.act(partition, 'waiters-find', args);
    const [came = null, ...more] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
    places.push(...more.map(String));
    to = came === null ? null : String(came);
    if (to === null || places.length >= wanted) break;
  }
  return { partition, places, to };
}

async function tally(
  store: Store,
  index: Index,
  { filter, budget }: { readonly filter: WaiterFilter; readonly budget: number },
): Promise<Tally> {
  const counts = new Map<string | null, number>();
  let to: Place | null = null;
  for (let looked = 0; looked < budget;) {
    const args = [index.kind, index.hash, to, STRETCH, filter.minAgeMs, ...restOf(filter)];
    const reply = await store.act(index.partition, 'waiters-tally', args);
    const [seen = 0, came = null, ...flat] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const node = String(flat[i]) || null;
      counts.set(node, (counts.get(node) ?? 0) + Number(flat[i + 1]));
    }
    looked += Number(seen);
    if (came === null) return { counts, complete: true };
    to = String(came);
  }
  return { counts, complete: false };
}

async function readMerged(
  store: Store,
  taken: readonly { readonly place: Place; readonly partition: number }[],
): Promise<Scan<PendingWait>['rows']> {
  const partitions = [...new Set(taken.map(({ partition }) => partition))];
  const waits = new Map<Place, PendingWait | null>();
  await Promise.all(
    partitions.map(async (partition) => {
      const places = taken.filter((one) => one.partition === partition).map(({ place }) => place);
      (await readPlaces(store, partition, places)).forEach((wait, i) => waits.set(places[i] ?? '', wait));
    }),
  );
  return taken.flatMap(({ place }) => {
    const row = waits.get(place);
    return row ? [{ row, position: [place] }] : [];
  });
}

function restOf({ clientId, nodeId, callerNodeId }: WaiterFilter): readonly (string | null)[] {
  return [clientId, nodeId, callerNodeId];
}

function lesser(a: Place | null, b: Place | null): Place | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

/**
 * Helpers for reads over several partitions: chooses the partitions, reads many keys at once, and sorts merged members.
 */
import type { Store } from './store.ts';

/** Returns the partition of a user, or all partitions if `userId` is null. */
export function partitionsOf(
  store: Pick<Store, 'partitions' | 'partitionOfUser'>,
  userId: string | null = null,
): readonly number[] {
  return userId === null ? [...Array(store.partitions).keys()] : [store.partitionOfUser(userId)];
}

/** Sorts items by the bytes of their texts, as Redis sorts index members of equal score. */
export function inByteOrder<T>(items: readonly T[], textOf: (item: T) => string): T[] {
  return items
    .map((item) => ({ item, bytes: Buffer.from(textOf(item)) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ item }) => item);
}

// Reads many keys at once, from the partitions that contain them.

type Keyed = { readonly userId: string };

/** How to read keys in one partition. `ask` gets at most `most` keys, and returns one answer per key, in order. */
type Scatter<K extends Keyed, A> = {
  readonly most: number;
  readonly ask: (partition: number, some: readonly K[]) => Promise<readonly A[]>;
};

/** Reads keys of several partitions at the same time. Returns one answer per key, in the order of the keys. */
export async function scattered<K extends Keyed, A>(
  store: Pick<Store, 'partitionOfUser'>,
  keys: readonly K[],
  { most, ask }: Scatter<K, A>,
): Promise<A[]> {
  const found: A[] = [];
  const read = async (partition: number, some: readonly (readonly [at: number, key: K])[]): Promise<void> => {
    const answers = await ask(
      partition,
      some.map(([, key]) => key),
    );
    answers.forEach((answer, i) => {
      const place = some[i];
      if (place) found[place[0]] = answer;
    });
  };
  const reads: Promise<void>[] = [];
  for (const [partition, all] of Map.groupBy(keys.entries(), ([, { userId }]) => store.partitionOfUser(userId)))
    for (let at = 0; at < all.length; at += most) reads.push(read(partition, all.slice(at, at + most)));
  await Promise.all(reads);
  return found;
}

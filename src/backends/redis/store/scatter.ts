/** Reads many keys at once from the partitions that have them. */
import type { Store } from './store.ts';

type Keyed = { readonly userId: string };

/**
 * The read of one partition: `ask` gets at most `most` keys, and returns one answer per key, in their order.
 */
export type Scatter<K extends Keyed, A> = {
  readonly most: number;
  readonly ask: (partition: number, some: readonly K[]) => Promise<readonly A[]>;
};

/** Reads keys of any partitions at the same time. Returns one answer per key, in the order of the keys. */
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

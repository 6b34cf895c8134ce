import type { Store } from './store.ts';

type Keyed = { readonly userId: string };

/** How keys are asked for: `ask` gets those of one partition, at most `most`, and answers each in that order. */
export type Scatter<K extends Keyed, A> = {
  readonly most: number;
  readonly ask: (partition: number, some: readonly K[]) => Promise<readonly A[]>;
};

/** One answer per key, in the order of the keys: asked for in all partitions concerned at once. */
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

/** Computes the limits of the shares that Redis counts over all nodes, and reads how much of them is used. */
import { SHARE_BOUNDS, type ShareBounds, type ShareName } from '../../core/shares/share-bounds.ts';
import { listOf } from './replies.ts';
import type { Store } from './store.ts';

/** The letter of each share in Lua (see shares.lua). */
const LETTERS = {
  queued_bytes: 'q',
  result_bytes: 'r',
  ended_records: 'e',
  marks: 'm',
  dedup_marks: 'd',
  history_bytes: 'h',
} as const satisfies Partial<Record<ShareName, string>>;
const COUNTED = Object.keys(LETTERS) as readonly (keyof typeof LETTERS)[];

/**
 * The limits of shares in one partition, by letter: the guarantee of a user, and the total of the partition (null: no
 * limit).
 */
type PartitionBounds = Readonly<Record<string, readonly [guarantee: number, total: number | null]>>;

/**
 * Returns the limits in one partition. Each partition gets an equal part of the total: a partition cannot read the
 * amounts in other partitions, and all data of a user is in one partition.
 */
export function boundsOfPartition(
  { partitions }: Pick<Store, 'partitions'>,
  bounds: ShareBounds = SHARE_BOUNDS,
): PartitionBounds {
  return Object.fromEntries(
    COUNTED.map((share) => {
      const { guarantee, total } = bounds[share];
      return [LETTERS[share], [guarantee, total && Math.floor(total / partitions)]];
    }),
  );
}

/** Reads how much of each share in LETTERS is held, over all users and nodes. */
export async function sharesInUse(store: Store): Promise<ReadonlyMap<ShareName, number>> {
  const read = await store.readAll((partition) => [['HMGET', store.key(partition, 'meta'), ...Object.values(LETTERS)]]);
  const held = read.flat();
  const sum = (at: number): number => held.reduce((all: number, amounts) => all + Number(listOf(amounts)[at] ?? 0), 0);
  return new Map(COUNTED.map((share, at) => [share, sum(at)]));
}

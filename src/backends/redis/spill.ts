/** Core's SpillStore in Redis: stores payloads that are too large for history, if the nodes share no directory. */
import { randomBytes } from 'node:crypto';
import { CallboardError } from '../../core/errors.ts';
import type { SpillRead, SpillRef, SpillStore } from '../../core/history/message.ts';
import { trustJson, utf8Length } from '../../core/json.ts';
import { SPILL_BYTES } from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';
import { SHARE_MESSAGE } from '../../core/shares/share-bounds.ts';
import type { Holdings, Shares } from '../../core/shares/shares.ts';
import { SparseQueue } from '../memory/sparse-queue.ts';
import { full } from '../spill/refusals.ts';
import { partitionOf } from './keys.ts';
import { partitionsOf } from './store-partitions.ts';
import type { Store } from './store.ts';

type RedisSpillOptions = {
  readonly store: Store;
  readonly sha256: (text: string) => string;
  readonly clock: Pick<Clock, 'now'>;
  /**
   * The limits of `spilled_bytes`. The limit of all users is divided evenly among the partitions. Payloads that this
   * node stores count in the shares of their users.
   */
  readonly shares: Shares;
};

const NAME = /^[0-9a-f]{32}$/;
/** The most payloads that one cleanup act removes. */
const CLEANED = 500;

/**
 * Creates a spill store in Redis. Payloads are as durable as Redis is. The name of a payload determines its partition.
 * `put` throws `share_exceeded` or `store_full` if a limit of bytes is reached, and `store_full` if Redis itself has no
 * memory left.
 */
export function createRedisSpill({ store, sha256, clock, shares }: RedisSpillOptions): SpillStore {
  const bound = Math.floor((shares.bounds.spilled_bytes.total ?? SPILL_BYTES) / store.partitions);
  const counted = createCountedPuts(clock, shares);
  const placeOf = (name: string): number => partitionOf(name, store.partitions);
  return {
    kind: 'redis',
    managed: true,
    async put(text, expiresAt, userId) {
      const name = randomBytes(16).toString('hex');
      const bytes = utf8Length(text);
      const refusal = counted.refusal(userId, bytes);
      if (refusal) throw refusal;
      const args = [name, expiresAt, bytes, bound, text];
      const taken = await store.act(placeOf(name), 'spill-put', args).catch(unlessOutOfMemory);
      if (taken !== 1) throw full();
      counted.add(userId, { name, bytes, expiresAt });
      return { name, bytes, sha256: sha256(text), expiresAt };
    },
    async preview(bytes, userId) {
      const refusal = counted.refusal(userId, bytes);
      if (refusal) return refusal;
      // The payload has no name yet, so its partition is unknown: if any partition lacks room, the answer is `unknown`.
      // Expired payloads may be removed before the payload is stored, which makes room.
      const fits = await Promise.all(
        partitionsOf(store).map((partition) => store.act(partition, 'spill-fits', [bytes, bound])),
      ).catch(unlessOutOfMemory);
      return fits.every((fit) => fit === 1) ? null : 'unknown';
    },
    async discard({ name, bytes }) {
      counted.remove(name);
      if (NAME.test(name)) await store.act(placeOf(name), 'spill-discard', [name, bytes]);
    },
    async read(ref) {
      const { name, expiresAt } = ref;
      if (!NAME.test(name) || !Number.isFinite(expiresAt)) return { state: 'unavailable' };
      if (expiresAt <= clock.now()) return { state: 'expired' };
      const [value] = await store.read([['GET', store.key(placeOf(name), 'payload', name)]]);
      const lead = `${expiresAt} `;
      if (typeof value !== 'string' || !value.startsWith(lead)) return { state: 'unavailable' };
      return whole(ref, value.slice(lead.length), sha256);
    },
    async clean() {
      const cleaned = partitionsOf(store).map((partition) => cleanOne(store, partition));
      return (await Promise.all(cleaned)).reduce((sum, removed) => sum + removed, 0);
    },
  };
}

function whole(ref: SpillRef, text: string, sha256: (text: string) => string): SpillRead {
  const same = utf8Length(text) === ref.bytes && sha256(text) === ref.sha256;
  return same ? { state: 'present', text: trustJson(text) } : { state: 'unavailable' };
}

async function cleanOne(store: Store, partition: number): Promise<number> {
  for (let removed = 0; ;) {
    const some = Number(await store.act(partition, 'spill-clean', [CLEANED]));
    removed += some;
    if (some < CLEANED) return removed;
  }
}

/**
 * Throws `store_full` if the error says that Redis has no memory left, because Redis then refuses an act before it
 * runs. Rethrows any other error.
 */
function unlessOutOfMemory(error: unknown): never {
  const cause = error instanceof CallboardError ? error.cause : error;
  if (cause instanceof Error && cause.message.startsWith('OOM')) throw full(undefined, cause);
  throw error;
}

// Counts the bytes that this process has put into the spill store, in the share `spilled_bytes` of each user.

type Put = { readonly name: string; readonly bytes: number; readonly expiresAt: number };
type CountedPut = Put & { readonly holdings: Holdings; gone: boolean };

/**
 * Counts the payloads that this node has put into a store that several nodes share. A payload counts in its user's
 * share `spilled_bytes` until it expires or is discarded.
 */
function createCountedPuts(clock: Pick<Clock, 'now'>, shares: Shares) {
  const puts = new Map<string, CountedPut>();
  const byAge = new SparseQueue<CountedPut>(({ gone }) => gone);
  const remove = (name: string): void => {
    const put = puts.get(name);
    if (!put) return;
    put.gone = true;
    puts.delete(name);
    byAge.noteDeleted();
    put.holdings.release('spilled_bytes', put.bytes);
  };
  return {
    /**
     * Returns why a user may not put this many bytes (`share_exceeded` or `store_full`); null if the user may. Counts
     * nothing.
     */
    refusal(userId: string, bytes: number): CallboardError | null {
      const now = clock.now();
      for (let old = byAge.first(); old && old.expiresAt <= now; old = byAge.first()) remove(old.name);
      const share = 'spilled_bytes';
      const refusal = shares.of(userId).refusal(share, bytes);
      return refusal && new CallboardError(refusal, SHARE_MESSAGE[refusal], { share });
    },
    add(userId: string, { name, bytes, expiresAt }: Put): void {
      const put = { name, holdings: shares.of(userId), bytes, expiresAt, gone: false };
      puts.set(name, put);
      byAge.push(put);
      put.holdings.take('spilled_bytes', bytes);
    },
    remove,
  };
}

/** The spill store in memory, for large payloads if no directory is configured. */
import type { CallboardError } from '../../core/errors.ts';
import type { SpillStore } from '../../core/history/message.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import { SPILL_CLEAN_MS } from '../../core/limits.ts';
import type { Clock, Crypto } from '../../core/ports.ts';
import { SPILL_IN_MEMORY } from '../../core/shares/share-bounds.ts';
import { createShares, type Holdings, type Shares } from '../../core/shares/shares.ts';
import { SparseQueue } from '../memory/sparse-queue.ts';
import { full } from './refusals.ts';

type StoredObject = {
  readonly name: string;
  /**
   * The content; null once the object is dropped. The queues may contain a dropped object for a while, but it is no
   * longer counted.
   */
  text: JsonText | null;
  readonly bytes: number;
  readonly expiresAt: number;
  readonly holdings: Holdings;
};

const isGone = ({ text }: StoredObject): boolean => text === null;

/**
 * Creates a spill store in memory. The share `spilled_bytes` limits it in the same way as `history_bytes` limits the
 * history. Beyond the total, the oldest object of the user who is most over their guarantee is dropped, or the oldest
 * of all if no user is over. Reading a dropped object gives `unavailable`. The content is lost with the process.
 */
export function createMemorySpill(
  clock: Clock,
  crypto: Pick<Crypto, 'randomId' | 'sha256'>,
  shares: Shares = createShares({ spilled_bytes: SPILL_IN_MEMORY }),
): SpillStore {
  const objects = new Map<string, StoredObject>();
  const byAge = new SparseQueue<StoredObject>(isGone);
  const ofUsers = new Map<string, SparseQueue<StoredObject>>();
  const total = shares.bounds.spilled_bytes.total ?? Infinity;
  let cleanedAt = -Infinity;
  const drop = (object: StoredObject): void => {
    const { name, bytes, holdings } = object;
    object.text = null;
    objects.delete(name);
    byAge.noteDeleted();
    const own = ofUsers.get(holdings.userId);
    own?.noteDeleted();
    if (own?.size === 0) ofUsers.delete(holdings.userId);
    holdings.release('spilled_bytes', bytes);
  };
  const clean = (): number => {
    const before = objects.size;
    cleanedAt = clock.monotonic();
    const now = clock.now();
    for (const object of objects.values()) if (object.expiresAt <= now) drop(object);
    return before - objects.size;
  };
  const add = (object: StoredObject): void => {
    const { name, bytes, holdings } = object;
    objects.set(name, object);
    byAge.push(object);
    const own = ofUsers.get(holdings.userId) ?? new SparseQueue<StoredObject>(isGone);
    ofUsers.set(holdings.userId, own);
    own.push(object);
    holdings.take('spilled_bytes', bytes);
  };
  const nextToGo = (newest: StoredObject): StoredObject | undefined => {
    const holder = shares.mostOver('spilled_bytes');
    const own = holder && ofUsers.get(holder.userId)?.first();
    return own && own !== newest ? own : byAge.first();
  };
  const refusalOf = (bytes: number): CallboardError | null => (bytes > total ? full() : null);
  return {
    kind: 'memory',
    managed: true,
    async put(text, expiresAt, userId) {
      const bytes = utf8Length(text);
      const refusal = refusalOf(bytes);
      if (refusal) throw refusal;
      if (shares.used('spilled_bytes') + bytes > total || clock.monotonic() - cleanedAt >= SPILL_CLEAN_MS) clean();
      const object: StoredObject = {
        name: crypto.randomId(),
        text,
        bytes,
        expiresAt,
        holdings: shares.of(userId),
      };
      add(object);
      // The loop ends, because the newest object alone fits: while the total is exceeded, there is an older object to
      // drop.
      while (shares.used('spilled_bytes') > total) {
        const old = nextToGo(object);
        if (!old || old === object) break;
        drop(old);
      }
      return { name: object.name, bytes, sha256: crypto.sha256(text), expiresAt };
    },
    preview: refusalOf,
    discard({ name }) {
      const object = objects.get(name);
      if (object) drop(object);
    },
    async read({ name, bytes, sha256, expiresAt }) {
      if (clock.now() >= expiresAt) return { state: 'expired' };
      const { text = null, bytes: held } = objects.get(name) ?? {};
      const whole = text !== null && held === bytes && crypto.sha256(text) === sha256;
      return whole ? { state: 'present', text } : { state: 'unavailable' };
    },
    clean,
  };
}

import { resolve } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillRef, SpillStore } from '../../core/history/spill.ts';
import { trustJson } from '../../core/json.ts';
import { SPILL_CLEAN_MS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import {
  createShares,
  SHARE_MESSAGE,
  type Holdings,
  type ShareRefusal,
  type Shares,
} from '../../core/shares/shares.ts';
import * as files from './files.ts';
import { full } from './full.ts';

export type DirectoryOptions = {
  /** Made when absent. Nothing outside it, and nothing in it that is not the store's own, is ever read, written or removed. */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** What each user holds, here and in the rooms of the same process; a table of its own when absent. */
  readonly shares?: Shares;
};

/**
 * A managed spill store in a directory: `<root>/<hour of expiry>/<2 hex>/<32 hex>`, of which the last 12 digits are a digest of the user. An object is written aside, synced and renamed before its
 * reference exists. Objects are hidden from their expiry on; their files go with their hour, on later writes and by `clean`.
 */
export function createDirectorySpill(options: DirectoryOptions): SpillStore {
  const { clock, log, shares = createShares() } = options;
  const root = resolve(options.root);
  const room = createRoom(root, shares);
  let cleanedAt = -Infinity;
  const clean = async (): Promise<number> => {
    cleanedAt = clock.now();
    const freed = await files.removePast(root, cleanedAt);
    for (const [owner, bytes] of freed.bytes) room.free(owner, bytes);
    return freed.objects;
  };
  const isTimeToClean = (): boolean => clock.now() - cleanedAt >= SPILL_CLEAN_MS;
  const makeRoom = async (owner: string, bytes: number): Promise<void> => {
    const refused = await room.take(owner, bytes);
    if (refused === null) return;
    if (isTimeToClean()) await clean();
    const refusal = await room.take(owner, bytes);
    if (refusal === 'store_full') throw full();
    if (refusal !== null) throw new CallboardError(refusal, SHARE_MESSAGE[refusal], { share: 'spilled_bytes' });
  };
  return {
    kind: 'directory',
    managed: true,
    async put(text, expiresAt, userId) {
      const bytes = Buffer.from(text, 'utf8');
      const owner = files.ownerMark(userId);
      const ref: SpillRef = {
        name: files.newName(owner),
        bytes: bytes.length,
        sha256: files.digestOf(bytes),
        expiresAt,
      };
      await makeRoom(owner, bytes.length).catch(refuse);
      await files.writeObject(root, ref, bytes).catch((error: unknown) => {
        room.free(owner, bytes.length);
        refuse(error);
      });
      // Not awaited: whoever writes next must not wait for what others left.
      if (isTimeToClean()) clean().catch((err: unknown) => log.warn({ err }, 'the spill directory was not cleaned'));
      return ref;
    },
    async discard(ref) {
      if (files.isObjectName(ref.name)) room.free(files.ownerOf(ref.name), await files.removeObject(root, ref));
    },
    async read(ref) {
      if (clock.now() >= ref.expiresAt) return { state: 'expired' };
      const bytes = files.isObjectName(ref.name) ? await files.readObject(root, ref).catch(() => null) : null;
      if (bytes === null || files.digestOf(bytes) !== ref.sha256) return { state: 'unavailable' };
      return { state: 'present', text: trustJson(bytes.toString('utf8')) };
    },
    clean,
  };
}

type Room = {
  /** Null when it was taken. */
  take(owner: string, bytes: number): Promise<ShareRefusal | null>;
  free(owner: string, bytes: number): void;
};

/**
 * What this process knows of the bytes in use: measured once, counted from then on. They count for a digest of the user, which is all that the
 * names say of those who wrote before.
 */
function createRoom(root: string, shares: Shares): Room {
  let measured: Promise<void> | null = null;
  // No user's name begins so.
  const holdingsOf = (owner: string): Holdings => shares.of(`/spill/${owner}`);
  const measure = async (): Promise<void> => {
    for (const [owner, bytes] of await files.measure(root)) holdingsOf(owner).take('spilled_bytes', bytes);
  };
  return {
    async take(owner, bytes) {
      measured ??= measure();
      try {
        await measured;
      } catch (error) {
        measured = null;
        throw error;
      }
      const holdings = holdingsOf(owner);
      const refusal = holdings.refusal('spilled_bytes', bytes);
      if (refusal === null) holdings.take('spilled_bytes', bytes);
      return refusal;
    },
    free(owner, bytes) {
      const holdings = holdingsOf(owner);
      // Another process may have written what this one removes.
      holdings.release('spilled_bytes', Math.min(bytes, holdings.held('spilled_bytes')));
    },
  };
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whatever kept the object from being written, no reference to it exists. */
function refuse(cause: unknown): never {
  if (cause instanceof CallboardError) throw cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code) ? 'The payload store is full.' : 'The payload could not be stored.';
  throw full(message, cause);
}

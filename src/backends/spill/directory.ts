/** A spill store in a directory. */
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
  /**
   * Created if absent. The store never reads, writes or removes anything outside of it, or files in it that are not its
   * own.
   */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** What each user holds of the shares, in this store and in the rest of the process; a separate table if absent. */
  readonly shares?: Shares;
};

/**
 * A managed spill store in a directory: `<root>/<hour of expiry>/<2 hex>/<32 hex>`. The last 12 digits of a file name
 * are a digest of the user. An object is written to a temporary file, synced and renamed before its reference exists.
 * Objects cannot be read after their expiry; their files are removed once their hour is over, by later writes and by
 * `clean`.
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
    if (refusal !== null) throw refusedRoom(refusal);
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
      // Not awaited, because a write must not wait until older objects are removed.
      if (isTimeToClean()) clean().catch((err: unknown) => log.warn({ err }, 'could not clean the spill directory'));
      return ref;
    },
    async preview(bytes, userId) {
      const refusal = await room.refusal(files.ownerMark(userId), bytes).catch(asFull);
      // The answer is unknown, because cleaning may make room.
      if (refusal !== null && isTimeToClean()) return 'unknown';
      return refusal === null || refusal instanceof CallboardError ? refusal : refusedRoom(refusal);
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
  /** Takes room for bytes. Resolves with null if it was taken. */
  take(owner: string, bytes: number): Promise<ShareRefusal | null>;
  /** What `take` would answer. */
  refusal(owner: string, bytes: number): Promise<ShareRefusal | null>;
  free(owner: string, bytes: number): void;
};

/**
 * The bytes in use as far as this process knows: measured once, then counted. They are counted per digest of the user,
 * because file names of earlier processes contain nothing else about the user.
 */
function createRoom(root: string, shares: Shares): Room {
  let measured: Promise<void> | null = null;
  // A name for an owner whose user id is unknown. No user id has this prefix.
  const holdingsOf = (owner: string): Holdings => shares.of(`/spill/${owner}`);
  const measure = async (): Promise<void> => {
    for (const [owner, bytes] of await files.measure(root)) holdingsOf(owner).take('spilled_bytes', bytes);
  };
  const measuredHoldings = async (owner: string): Promise<Holdings> => {
    measured ??= measure();
    try {
      await measured;
    } catch (error) {
      measured = null;
      throw error;
    }
    return holdingsOf(owner);
  };
  return {
    refusal: async (owner, bytes) => (await measuredHoldings(owner)).refusal('spilled_bytes', bytes),
    async take(owner, bytes) {
      const holdings = await measuredHoldings(owner);
      const refusal = holdings.refusal('spilled_bytes', bytes);
      if (refusal === null) holdings.take('spilled_bytes', bytes);
      return refusal;
    },
    free(owner, bytes) {
      const holdings = holdingsOf(owner);
      // Another process may have written a file that this one removes, so not all of its bytes may have been counted
      // here.
      holdings.release('spilled_bytes', Math.min(bytes, holdings.held('spilled_bytes')));
    },
  };
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

function refusedRoom(refusal: ShareRefusal): CallboardError {
  if (refusal === 'store_full') return full();
  return new CallboardError(refusal, SHARE_MESSAGE[refusal], { share: 'spilled_bytes' });
}

/** Throws `store_full`, whatever prevented the write; no reference to the object exists. */
function refuse(cause: unknown): never {
  throw asFull(cause);
}

function asFull(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code) ? 'The payload store is full.' : 'The payload could not be stored.';
  return full(message, cause);
}

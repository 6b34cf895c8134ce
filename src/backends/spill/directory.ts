/** A store of large payloads in a directory (a "spill store"): history keeps only references to them. */
import { resolve } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillRef, SpillStore } from '../../core/history/spill.ts';
import { trustJson } from '../../core/json.ts';
import { SPILL_CLEAN_MS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { ShareRefusal } from '../../core/shares/bounds.ts';
import { createShares, SHARE_MESSAGE, type Holdings, type Shares } from '../../core/shares/shares.ts';
import * as files from './files.ts';
import { full } from './full.ts';

export type DirectoryOptions = {
  /**
   * The directory. It is created if absent. The store reads, writes and removes only its own files, and only in this
   * directory.
   */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * What each user holds of the shared resources, in this store and in the rest of the process. If absent, the store
   * has a table of its own.
   */
  readonly shares?: Shares;
};

/**
 * Creates a spill store in a directory. The path of an object is `<root>/<hour of expiry>/<2 hex>/<32 hex>`; the last
 * 12 digits of the file name are a digest of the user. An object is written to a temporary file, synced and renamed
 * before its reference exists. An object cannot be read after its expiry. Its file is removed once its hour is over, by
 * a later write or by `clean`.
 */
export function createDirectorySpill(options: DirectoryOptions): SpillStore {
  const { clock, log, shares = createShares() } = options;
  const root = resolve(options.root);
  const room = createRoom(root, shares);
  let cleanedAt = -Infinity;
  const clean = async (): Promise<number> => {
    cleanedAt = clock.monotonic();
    const freed = await files.removePast(root, clock.now());
    for (const [owner, bytes] of freed.bytes) room.free(owner, bytes);
    return freed.objects;
  };
  const isTimeToClean = (): boolean => clock.monotonic() - cleanedAt >= SPILL_CLEAN_MS;
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
      // This is not awaited, because a write must not wait until older objects are removed.
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
  /** Reserves room for this many bytes. Resolves with null if there was room, otherwise with the reason. */
  take(owner: string, bytes: number): Promise<ShareRefusal | null>;
  /** Resolves with what `take` would answer, and reserves nothing. */
  refusal(owner: string, bytes: number): Promise<ShareRefusal | null>;
  free(owner: string, bytes: number): void;
};

/**
 * Counts the bytes in the directory, as far as this process knows: it measures them once and counts its own changes
 * from then on. The bytes are counted for each digest of a user, because the files of earlier processes have only that
 * digest in their names.
 */
function createRoom(root: string, shares: Shares): Room {
  let measured: Promise<void> | null = null;
  // Makes a name for a user whose id is unknown. No user id has this prefix.
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
      // Another process may have written a file that this one removes, so its bytes may not have been counted here.
      holdings.release('spilled_bytes', Math.min(bytes, holdings.held('spilled_bytes')));
    },
  };
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

function refusedRoom(refusal: ShareRefusal): CallboardError {
  if (refusal === 'store_full') return full();
  return new CallboardError(refusal, SHARE_MESSAGE[refusal], { share: 'spilled_bytes' });
}

/** Throws `store_full`, whatever prevented the write. No reference to the object exists then. */
function refuse(cause: unknown): never {
  throw asFull(cause);
}

function asFull(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code) ? 'The payload store is full.' : 'The payload could not be stored.';
  return full(message, cause);
}

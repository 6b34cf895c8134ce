/**
 * The spill store in a directory, for large payloads that history refers to: counts what users hold, and names and
 * expires the objects.
 *
 * files.ts reads and writes the files.
 */
import { createHash } from 'node:crypto';
import { CallboardError } from '../../core/errors.ts';
import type { SpillStore } from '../../core/history/message.ts';
import { trustJson } from '../../core/json.ts';
import { SPILL_CLEAN_MS } from '../../core/limits.ts';
import type { Clock, Crypto, Log } from '../../core/ports.ts';
import type { ShareRefusal } from '../../core/shares/share-bounds.ts';
import { createShares, type Holdings, type Shares } from '../../core/shares/shares.ts';
import { OWNER_DIGITS, ownerOf, type SpillFiles } from './files.ts';
import { asFull, refusedRoom } from './refusals.ts';

type DirectoryOptions = {
  /** The files of the directory. No other code may change them. */
  readonly files: SpillFiles;
  readonly clock: Clock;
  readonly random: Pick<Crypto, 'randomToken'>;
  readonly log: Log;
  /**
   * What each user holds of the shared resources, in this store and elsewhere in the process. If absent, the store
   * creates its own.
   */
  readonly shares?: Shares;
  /** Throws `store_full` if not even the smallest payload may be added now. */
  readonly checkRoom?: () => void;
};

/**
 * Creates a spill store over the files of a directory. The name of an object ends with a digest of its user. An object
 * is on the disk before a reference to it exists, and cannot be read after its expiry. Its file stays until the end of
 * the hour in which it expires, and is then removed by a later write or by `clean`.
 */
export function createDirectorySpill(options: DirectoryOptions): SpillStore {
  const { files, clock, random, log, shares = createShares(), checkRoom = () => {} } = options;
  const room = createRoom(files, shares);
  let cleanedAt = -Infinity;
  const clean = async (): Promise<number> => {
    cleanedAt = clock.monotonic();
    const freed = await files.removePast(clock.now());
    for (const [owner, bytes] of freed.bytes) room.free(owner, bytes);
    return freed.objects;
  };
  const isTimeToClean = (): boolean => clock.monotonic() - cleanedAt >= SPILL_CLEAN_MS;
  const makeRoom = async (owner: string, bytes: number): Promise<void> => {
    if ((await room.take(owner, bytes)) === null) return;
    if (isTimeToClean()) await clean();
    // Tries again, because `clean` or a discarded object may have made room.
    const refusal = await room.take(owner, bytes);
    if (refusal !== null) throw refusedRoom(refusal);
  };
  return {
    kind: 'directory',
    managed: true,
    async put(text, expiresAt, userId) {
      checkRoom();
      const content = new TextEncoder().encode(text);
      const bytes = content.length;
      const owner = ownerMark(userId);
      const name = newName(owner, random);
      await makeRoom(owner, bytes).catch(throwFull);
      const sha256 = await files.write({ name, expiresAt }, content).catch((error: unknown) => {
        room.free(owner, bytes);
        return throwFull(error);
      });
      // Not awaited, because a write must not wait for the removal of older objects.
      if (isTimeToClean()) clean().catch((err: unknown) => log.warn({ err }, 'could not clean the spill directory'));
      return { name, bytes, sha256, expiresAt };
    },
    async preview(bytes, userId) {
      const refusal = await room.refusal(ownerMark(userId), bytes).catch(asFull);
      // The answer is unknown, because cleaning may make room.
      if (refusal !== null && isTimeToClean()) return 'unknown';
      return refusal === null || refusal instanceof CallboardError ? refusal : refusedRoom(refusal);
    },
    async discard(ref) {
      room.free(ownerOf(ref.name), await files.remove(ref));
    },
    async read(ref) {
      if (clock.now() >= ref.expiresAt) return { state: 'expired' };
      const content = await files.read(ref).catch(() => null);
      if (content === null) return { state: 'unavailable' };
      const { buffer, byteOffset, length } = content;
      return { state: 'present', text: trustJson(Buffer.from(buffer, byteOffset, length).toString('utf8')) };
    },
    clean,
    close: () => files.close(),
  };
}

/** Converts any error of a write into a CallboardError and throws it. */
function throwFull(cause: unknown): never {
  throw asFull(cause);
}

/**
 * Returns the last digits of the names of a user's objects: a digest that shows which objects belong to the same user,
 * but not who the user is.
 */
function ownerMark(userId: string): string {
  return createHash('sha256').update(userId).digest('hex').slice(0, OWNER_DIGITS);
}

/** The number of random bytes in a name. They are its first 20 digits; the digits of the owner follow. */
const RANDOM_BYTES = 10;

function newName(owner: string, random: Pick<Crypto, 'randomToken'>): string {
  return Buffer.from(random.randomToken(), 'base64url').toString('hex', 0, RANDOM_BYTES) + owner;
}

type Room = {
  /**
   * Reserves room for this many bytes. Resolves with null if there was room, otherwise with the reason of the refusal.
   */
  take(owner: string, bytes: number): Promise<ShareRefusal | null>;
  /** Resolves with the same value as `take`, but reserves nothing. */
  refusal(owner: string, bytes: number): Promise<ShareRefusal | null>;
  free(owner: string, bytes: number): void;
};

/**
 * Counts the bytes in the directory: measures them once, and then counts the changes of this process. They are counted
 * by the digest of the user, because the files of earlier processes contain only that digest in their names.
 */
function createRoom(files: SpillFiles, shares: Shares): Room {
  let measured: Promise<void> | null = null;
  // The names of the files do not tell the user, so each digest is a holder of its own. No user id has this prefix.
  const holdingsOf = (owner: string): Holdings => shares.of(`/spill/${owner}`);
  const measure = async (): Promise<void> => {
    for (const [owner, bytes] of await files.measure()) holdingsOf(owner).take('spilled_bytes', bytes);
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
      // The removed file may have been written by another process, so its bytes may not have been counted here.
      holdings.release('spilled_bytes', Math.min(bytes, holdings.held('spilled_bytes')));
    },
  };
}

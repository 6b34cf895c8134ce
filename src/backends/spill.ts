/**
 * The stores of large payloads ("spill stores"): in a directory, or in memory if no directory is configured. History
 * keeps only references to the payloads.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { lstat, mkdir, open, readdir, realpath, rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { CallboardError } from '../core/errors.ts';
import type { SpillRef, SpillStore } from '../core/history/message.ts';
import { trustJson, utf8Length, type JsonText } from '../core/json.ts';
import { SPILL_CLEAN_MS } from '../core/limits.ts';
import type { Clock, Log, Crypto } from '../core/ports.ts';
import {
  SHARE_MESSAGE,
  createShares,
  type Holdings,
  type ShareRefusal,
  type Shares,
  SPILL_IN_MEMORY,
} from '../core/shares/shares.ts';
import { SparseQueue } from './memory/collections.ts';

type DirectoryOptions = {
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
    const freed = await removePast(root, clock.now());
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
      const owner = ownerMark(userId);
      const ref: SpillRef = {
        name: newName(owner),
        bytes: bytes.length,
        sha256: digestOf(bytes),
        expiresAt,
      };
      await makeRoom(owner, bytes.length).catch(refuse);
      await writeObject(root, ref, bytes).catch((error: unknown) => {
        room.free(owner, bytes.length);
        refuse(error);
      });
      // This is not awaited, because a write must not wait until older objects are removed.
      if (isTimeToClean()) clean().catch((err: unknown) => log.warn({ err }, 'could not clean the spill directory'));
      return ref;
    },
    async preview(bytes, userId) {
      const refusal = await room.refusal(ownerMark(userId), bytes).catch(asFull);
      // The answer is unknown, because cleaning may make room.
      if (refusal !== null && isTimeToClean()) return 'unknown';
      return refusal === null || refusal instanceof CallboardError ? refusal : refusedRoom(refusal);
    },
    async discard(ref) {
      if (isObjectName(ref.name)) room.free(ownerOf(ref.name), await removeObject(root, ref));
    },
    async read(ref) {
      if (clock.now() >= ref.expiresAt) return { state: 'expired' };
      const bytes = isObjectName(ref.name) ? await readObject(root, ref).catch(() => null) : null;
      if (bytes === null || digestOf(bytes) !== ref.sha256) return { state: 'unavailable' };
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
  // The holder stands for a user whose id is unknown. No user id has this prefix.
  const holdingsOf = (owner: string): Holdings => shares.of(`/spill/${owner}`);
  const measure = async (): Promise<void> => {
    for (const [owner, bytes] of await measureObjects(root)) holdingsOf(owner).take('spilled_bytes', bytes);
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

/**
 * Throws a CallboardError as it is, and any other error of a write as `store_full`. No reference to the object exists
 * then.
 */
function refuse(cause: unknown): never {
  throw asFull(cause);
}

function asFull(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code) ? 'The payload store is full.' : 'The payload could not be stored.';
  return full(message, cause);
}

// Names, reads, writes and removes the files of a spill directory. It knows no limits of users.

const HOUR_MS = 3600_000;
const NAME = /^[0-9a-f]{32}$/;
/** Matches the file name of an object, and that of a temporary file that a crash has left. */
const OWN_FILE = /^\.?[0-9a-f]{32}$/;
const DIGEST_FOLDER = /^[0-9a-f]{2}$/;
/**
 * Matches the name of a directory of the store: the number of hours since 1970. A directory with fewer digits, such as
 * one named after a year, is not the store's own.
 */
const HOUR = /^[0-9]{6,9}$/;

/** The name and the expiry of an object, which decide where it is stored. */
type SpillLocation = Pick<SpillRef, 'name' | 'expiresAt'>;

/** The number of bytes that are stored for each owner, by the owner's mark (`ownerMark`). */
type BytesByOwner = ReadonlyMap<string, number>;

type Freed = { readonly objects: number; readonly bytes: BytesByOwner };

/** The number of digits of a file name that are the owner's mark. */
const OWNER_DIGITS = 12;

/**
 * Returns the last digits of the file names of a user's objects. They show which files belong to the same user, but not
 * who the user is.
 */
function ownerMark(userId: string): string {
  return createHash('sha256').update(userId).digest('hex').slice(0, OWNER_DIGITS);
}

function newName(owner: string): string {
  return randomBytes(10).toString('hex') + owner;
}

function ownerOf(name: string): string {
  return name.slice(-OWNER_DIGITS);
}

function isObjectName(name: string): boolean {
  return NAME.test(name);
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

/** Writes an object. The object is durable when the promise resolves. If it rejects, no file is left. */
async function writeObject(root: string, place: SpillLocation, bytes: Buffer): Promise<void> {
  const folder = await makeFolder(root, place);
  const aside = join(folder, `.${place.name}`);
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
  const file = await open(aside, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
    await file.close();
    await rename(aside, join(folder, place.name));
  } catch (error) {
    await file.close().catch(() => {});
    await unlink(aside).catch(() => {});
    throw error;
  }
  await syncFolder(folder);
}

/**
 * Reads an object. Rejects if the object does not exist, or if its path leads to something else: a file of another
 * size, a link, a pipe, or a place outside of the root.
 */
async function readObject(root: string, ref: SpillRef): Promise<Buffer> {
  const folder = folderOf(root, ref);
  await requireInside(root, folder);
  // Without O_NONBLOCK, opening a pipe would block until another process writes to it.
  const file = await open(join(folder, ref.name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.size !== ref.bytes) throw new Error('not the object that was written');
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Removes an object. Resolves with the number of bytes that were freed; 0 if the object did not exist. */
async function removeObject(root: string, place: SpillLocation): Promise<number> {
  const folder = folderOf(root, place);
  try {
    await requireInside(root, folder);
    return await removeFile(join(folder, place.name));
  } catch (error) {
    if (isAbsent(error)) return 0;
    throw error;
  }
}

/** Measures the bytes of all objects and leftover temporary files, by owner. */
async function measureObjects(root: string): Promise<BytesByOwner> {
  const bytes = new Map<string, number>();
  for await (const { folder, files } of objectFolders(root, () => true)) {
    for (const file of files) addTo(bytes, file, await sizeOf(join(folder, file)));
  }
  return bytes;
}

function addTo(bytes: Map<string, number>, file: string, more: number): void {
  const owner = ownerOf(file);
  bytes.set(owner, (bytes.get(owner) ?? 0) + more);
}

/**
 * Removes the objects whose hour is over, and their directories. Leaves links, and files that are not the store's own.
 */
async function removePast(root: string, now: number): Promise<Freed> {
  let objects = 0;
  const bytes = new Map<string, number>();
  const hours = new Set<string>();
  for await (const { folder, files } of objectFolders(root, (hour) => hour * HOUR_MS <= now)) {
    for (const file of files) {
      addTo(bytes, file, await removeFile(join(folder, file)));
      if (isObjectName(file)) objects++;
    }
    await rmdir(folder).catch(() => {});
    hours.add(dirname(folder));
  }
  for (const hour of hours) await rmdir(hour).catch(() => {});
  return { objects, bytes };
}

/**
 * Returns the directory of an object. The hour is rounded up, so that all objects of a directory have expired when its
 * hour is over.
 */
function folderOf(root: string, { name, expiresAt }: SpillLocation): string {
  return join(root, String(Math.ceil(expiresAt / HOUR_MS)), name.slice(0, 2));
}

async function makeFolder(root: string, place: SpillLocation): Promise<string> {
  const folder = folderOf(root, place);
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  await requireInside(root, folder);
  // Syncs each parent of a new directory, because only then the directory is durable.
  for (let above = folder; made !== undefined && above.length >= made.length; above = dirname(above)) {
    await syncFolder(dirname(above));
  }
  return folder;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  await handle.sync().finally(() => handle.close());
}

/**
 * Rejects if a link is in place of a directory, because the link would lead outside of the root. The root itself may be
 * a link, because the operator chose it.
 */
async function requireInside(root: string, folder: string): Promise<void> {
  const [realRoot, realFolder] = await Promise.all([realpath(root), realpath(folder)]);
  const below = folder
    .slice(root.length)
    .split(sep)
    .filter((part) => part !== '');
  if (realFolder !== join(realRoot, ...below)) throw new Error('the folder leads out of the root');
}

type ObjectFolder = { readonly folder: string; readonly files: readonly string[] };

/** Iterates over the store's own directories, with the store's own files in them. */
async function* objectFolders(root: string, wanted: (hour: number) => boolean): AsyncGenerator<ObjectFolder> {
  for (const hour of await entriesOf(root)) {
    if (!hour.isDirectory() || !HOUR.test(hour.name) || !wanted(Number(hour.name))) continue;
    for (const entry of await entriesOf(join(root, hour.name))) {
      if (!entry.isDirectory() || !DIGEST_FOLDER.test(entry.name)) continue;
      const folder = join(root, hour.name, entry.name);
      const entries = await entriesOf(folder);
      yield { folder, files: entries.filter((one) => one.isFile() && OWN_FILE.test(one.name)).map(({ name }) => name) };
    }
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

async function removeFile(path: string): Promise<number> {
  const bytes = await sizeOf(path);
  await unlink(path);
  return bytes;
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).size;
  } catch (error) {
    if (isAbsent(error)) return 0;
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/**
 * Creates the error for a payload that did not fit or could not be written. No reference to the payload exists. The
 * message does not reveal where the store is.
 */
export function full(message = 'The payload store is full.', cause?: unknown): CallboardError {
  const options = cause === undefined ? {} : { cause };
  return new CallboardError('store_full', message, { share: 'spilled_bytes', ...options });
}

type Held = {
  readonly name: string;
  /**
   * The content, or null once the object is dropped. The queues may keep a dropped object for a while, but its content
   * is no longer counted.
   */
  text: JsonText | null;
  readonly bytes: number;
  readonly expiresAt: number;
  readonly holdings: Holdings;
};

const isGone = ({ text }: Held): boolean => text === null;

/**
 * Creates a spill store in memory. The share `spilled_bytes` bounds it in the same way as `history_bytes` bounds the
 * history. Beyond the total, the oldest object of the user who is most over their guarantee is dropped first, or the
 * oldest of all if no user is over. Reading a dropped object reports `unavailable`. The content is lost with the
 * process.
 */
export function createMemorySpill(
  clock: Clock,
  crypto: Pick<Crypto, 'randomId' | 'sha256'>,
  shares: Shares = createShares({ spilled_bytes: SPILL_IN_MEMORY }),
): SpillStore {
  const objects = new Map<string, Held>();
  const byAge = new SparseQueue<Held>(isGone);
  const ofUsers = new Map<string, SparseQueue<Held>>();
  const total = shares.bounds.spilled_bytes.total ?? Infinity;
  let cleanedAt = -Infinity;
  const drop = (object: Held): void => {
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
  const add = (object: Held): void => {
    const { name, bytes, holdings } = object;
    objects.set(name, object);
    byAge.push(object);
    const own = ofUsers.get(holdings.userId) ?? new SparseQueue<Held>(isGone);
    ofUsers.set(holdings.userId, own);
    own.push(object);
    holdings.take('spilled_bytes', bytes);
  };
  const nextToGo = (newest: Held): Held | undefined => {
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
      const object: Held = {
        ...{ name: crypto.randomId(), text, bytes, expiresAt },
        holdings: shares.of(userId),
      };
      add(object);
      // The loop ends: the newest object alone fits, so while the total is exceeded there is an older one to drop.
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

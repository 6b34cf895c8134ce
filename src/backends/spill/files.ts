/** Names, reads, writes and removes the files of a spill directory. */
import { createHash } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { lstat, mkdir, open, readdir, realpath, rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import type { SpillRef } from '../../core/history/message.ts';

/** The name and the expiry of an object, which decide where it is stored. */
type SpillLocation = Pick<SpillRef, 'name' | 'expiresAt'>;
/** The number of stored bytes of each owner. The key is the last digits of the names (see `ownerOf`). */
type BytesByOwner = ReadonlyMap<string, number>;
/** The removed data: the number of objects, and the bytes of all files. */
type Freed = { readonly objects: number; readonly bytes: BytesByOwner };

/**
 * The files of a directory. Only files of the store itself are read, written and removed, and only in this directory.
 */
export interface SpillFiles {
  /**
   * Writes an object, and creates the directory if it is absent. The object is on the disk when the promise resolves
   * with the SHA-256 digest of the content in base64url. If it rejects, no file is left. The content must not be used
   * afterwards.
   */
  write(place: SpillLocation, content: Uint8Array): Promise<string>;
  /** Reads an object. Rejects if it does not exist, or differs from what was written. */
  read(ref: SpillRef): Promise<Uint8Array>;
  /** Removes an object. Resolves with the number of bytes that were freed; 0 if the object did not exist. */
  remove(place: SpillLocation): Promise<number>;
  /** Measures all objects, and the temporary files that a crash has left behind. */
  measure(): Promise<BytesByOwner>;
  /**
   * Removes the objects in directories whose hour is over at `now` (epoch milliseconds), with these directories. Does
   * not touch links, or files that do not belong to the store.
   */
  removePast(now: number): Promise<Freed>;
  /** Releases the resources behind the files once the calls in progress have ended. */
  close(): void;
}

/**
 * Opens the files of a directory. The path of an object is `<root>/<hour of expiry>/<2 hex>/<32 hex>`. An object is
 * written to a temporary file, synced and renamed.
 */
export function createSpillFiles(path: string): SpillFiles {
  const root = resolve(path);
  return {
    async write(place, content) {
      await writeObject(root, place, content);
      return digestOf(content);
    },
    async read(ref) {
      if (!isObjectName(ref.name)) throw new Error('no name of an object');
      const content = await readObject(root, ref);
      if (digestOf(content) !== ref.sha256) throw new Error('not the object that was written');
      return content;
    },
    remove: async (place) => (isObjectName(place.name) ? removeObject(root, place) : 0),
    measure: () => measureObjects(root),
    removePast: (now) => removePast(root, now),
    close() {},
  };
}

const HOUR_MS = 3600_000;
const NAME = /^[0-9a-f]{32}$/;
/** Matches the file name of an object, and the name of a temporary file that a crash has left behind. */
const OWN_FILE = /^\.?[0-9a-f]{32}$/;
const DIGEST_FOLDER = /^[0-9a-f]{2}$/;
/**
 * Matches the name of a directory of the store: the number of hours since 1970. A directory with fewer digits, such as
 * one named after a year, does not belong to the store.
 */
const HOUR = /^[0-9]{6,9}$/;

/** The number of digits at the end of an object's name that are the same for all objects of a user. */
export const OWNER_DIGITS = 12;

/** Returns those digits of an object's name that are the same for all objects of its user. */
export function ownerOf(name: string): string {
  return name.slice(-OWNER_DIGITS);
}

function isObjectName(name: string): boolean {
  return NAME.test(name);
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

async function writeObject(root: string, place: SpillLocation, bytes: Uint8Array): Promise<void> {
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
 * Reads an object. Rejects if it does not exist, or if its path is not a regular file of the expected size inside the
 * root (for example a link or a pipe).
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
 * Returns the directory of an object. The hour is rounded up, so that all objects in a directory have expired when its
 * hour is over.
 */
function folderOf(root: string, { name, expiresAt }: SpillLocation): string {
  return join(root, String(Math.ceil(expiresAt / HOUR_MS)), name.slice(0, 2));
}

async function makeFolder(root: string, place: SpillLocation): Promise<string> {
  const folder = folderOf(root, place);
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  await requireInside(root, folder);
  // Each parent of a new directory is synced, because a directory is durable only then.
  for (let above = folder; made !== undefined && above.length >= made.length; above = dirname(above)) {
    await syncFolder(dirname(above));
  }
  return folder;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Rejects if a link takes the place of a directory, because the link could lead outside the root. The root itself may
 * be a link, because the operator chose it.
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

/** Iterates over the directories of the store, with the files of the store in them. */
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

/** Names, reads, writes and removes the files of a spill directory. It knows no limits of users. */
import { createHash, randomBytes } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { lstat, mkdir, open, readdir, realpath, rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import type { SpillRef } from '../../core/history/spill.ts';

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
export type SpillLocation = Pick<SpillRef, 'name' | 'expiresAt'>;

/** The number of bytes that are stored for each owner, by the owner's mark (`ownerMark`). */
export type BytesByOwner = ReadonlyMap<string, number>;

export type Freed = { readonly objects: number; readonly bytes: BytesByOwner };

/** The number of digits of a file name that are the owner's mark. */
const OWNER_DIGITS = 12;

/**
 * Returns the last digits of the file names of a user's objects. They show which files belong to the same user, but not
 * who the user is.
 */
export function ownerMark(userId: string): string {
  return createHash('sha256').update(userId).digest('hex').slice(0, OWNER_DIGITS);
}

export function newName(owner: string): string {
  return randomBytes(10).toString('hex') + owner;
}

export function ownerOf(name: string): string {
  return name.slice(-OWNER_DIGITS);
}

export function isObjectName(name: string): boolean {
  return NAME.test(name);
}

export function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

/** Writes an object. The object is durable when the promise resolves. If it rejects, no file is left. */
export async function writeObject(root: string, place: SpillLocation, bytes: Buffer): Promise<void> {
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
export async function readObject(root: string, ref: SpillRef): Promise<Buffer> {
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
export async function removeObject(root: string, place: SpillLocation): Promise<number> {
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
export async function measure(root: string): Promise<BytesByOwner> {
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
export async function removePast(root: string, now: number): Promise<Freed> {
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

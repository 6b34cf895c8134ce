import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, realpath, rename, rm, unlink } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillRef, SpillStore } from '../../core/history/spill.ts';
import { trustJson, utf8Length, type JsonText } from '../../core/json.ts';
import { SPILL_CLEAN_MS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';

const HOUR_MS = 3600_000;
const NAME = /^[0-9a-f]{32}$/;
const HOUR = /^[0-9]{1,9}$/;
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EACCES', 'EPERM', 'EMFILE', 'ENFILE']);

export type DirectoryOptions = {
  /** Made when absent; nothing outside it is ever read, written or removed. */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
};

/**
 * A managed spill store in a directory: `<root>/<hour of expiry>/<2 hex>/<32 hex>`. An object is written aside, synced and renamed before its
 * reference exists. Expired hours are removed on later writes and by `clean`; until then their objects are hidden.
 */
export function createDirectorySpill({ root, clock, log }: DirectoryOptions): SpillStore {
  let cleanedAt = -Infinity;
  const clean = (): Promise<number> => removeExpired(root, clock.now());
  const cleanSometimes = (): void => {
    if (clock.now() - cleanedAt < SPILL_CLEAN_MS) return;
    cleanedAt = clock.now();
    clean().catch((error: unknown) => log.warn({ err: error }, 'the spill directory was not cleaned'));
  };
  return {
    kind: 'directory',
    managed: true,
    async put(text, expiresAt) {
      const name = randomBytes(16).toString('hex');
      try {
        await write(root, { name, expiresAt }, text);
      } catch (error) {
        throw refusal(error);
      }
      cleanSometimes();
      return { name, bytes: utf8Length(text), sha256: digest(text), expiresAt };
    },
    async read(ref) {
      if (clock.now() >= ref.expiresAt) return { state: 'expired' };
      const text = NAME.test(ref.name) ? await readObject(root, ref).catch(() => null) : null;
      const whole = text !== null && utf8Length(text) === ref.bytes && digest(text) === ref.sha256;
      return whole ? { state: 'present', text: trustJson(text) } : { state: 'unavailable' };
    },
    clean,
  };
}

type Place = Pick<SpillRef, 'name' | 'expiresAt'>;

/** The hour rounds up, so that an hour's directory is past only when all of its objects are. */
function folderOf(root: string, { name, expiresAt }: Place): string {
  return join(root, String(Math.ceil(expiresAt / HOUR_MS)), name.slice(0, 2));
}

async function write(root: string, place: Place, text: JsonText): Promise<void> {
  const folder = folderOf(root, place);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const aside = join(folder, `.${place.name}`);
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
  const file = await open(aside, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600);
  try {
    await file.writeFile(text, 'utf8');
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

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  await handle.sync().finally(() => handle.close());
}

/** Refuses a link in the place of the object and a folder that leads out of the root. */
async function readObject(root: string, ref: SpillRef): Promise<string> {
  const folder = folderOf(root, ref);
  const [realRoot, realFolder] = await Promise.all([realpath(root), realpath(folder)]);
  if (!realFolder.startsWith(realRoot + sep)) throw new Error('the folder leads out of the root');
  const file = await open(join(folder, ref.name), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    if (size !== ref.bytes) throw new Error('another size');
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** Whole hours that are past; how many objects they held. */
async function removeExpired(root: string, now: number): Promise<number> {
  let removed = 0;
  const hours = await readdir(root, { withFileTypes: true }).catch(() => []);
  for (const { name } of hours) {
    if (!HOUR.test(name) || Number(name) * HOUR_MS > now) continue;
    const folder = join(root, name);
    removed += (await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])).filter((found) =>
      found.isFile(),
    ).length;
    await rm(folder, { recursive: true, force: true });
  }
  return removed;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function refusal(cause: unknown): CallboardError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code)
    ? 'The payload store has no room or cannot be written.'
    : 'The payload could not be stored.';
  return new CallboardError('payload_store_full', message, { cause });
}

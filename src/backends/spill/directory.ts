import { resolve } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillRef, SpillStore } from '../../core/history/spill.ts';
import { trustJson } from '../../core/json.ts';
import { SPILL_BYTES, SPILL_CLEAN_MS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import * as files from './files.ts';

export type DirectoryOptions = {
  /** Made when absent. Nothing outside it, and nothing in it that is not the store's own, is ever read, written or removed. */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxBytes?: number;
};

/**
 * A managed spill store in a directory: `<root>/<hour of expiry>/<2 hex>/<32 hex>`. An object is written aside, synced and renamed before its
 * reference exists. Objects are hidden from their expiry on; their files go with their hour, on later writes and by `clean`.
 */
export function createDirectorySpill(options: DirectoryOptions): SpillStore {
  const { clock, log, maxBytes = SPILL_BYTES } = options;
  const root = resolve(options.root);
  const room = createRoom(root, maxBytes);
  let cleanedAt = -Infinity;
  const clean = async (): Promise<number> => {
    cleanedAt = clock.now();
    const freed = await files.removePast(root, cleanedAt);
    room.free(freed.bytes);
    return freed.objects;
  };
  const isTimeToClean = (): boolean => clock.now() - cleanedAt >= SPILL_CLEAN_MS;
  const makeRoom = async (bytes: number): Promise<void> => {
    if (await room.take(bytes)) return;
    if (isTimeToClean()) await clean();
    if (!(await room.take(bytes))) throw new CallboardError('payload_store_full', 'The payload store is full.');
  };
  return {
    kind: 'directory',
    managed: true,
    async put(text, expiresAt) {
      const bytes = Buffer.from(text, 'utf8');
      const ref: SpillRef = {
        name: files.newName(),
        bytes: bytes.length,
        sha256: files.digestOf(bytes),
        expiresAt,
      };
      await makeRoom(bytes.length).catch(refuse);
      await files.writeObject(root, ref, bytes).catch((error: unknown) => {
        room.free(bytes.length);
        refuse(error);
      });
      // Not awaited: whoever writes next must not wait for what others left.
      if (isTimeToClean()) clean().catch((err: unknown) => log.warn({ err }, 'the spill directory was not cleaned'));
      return ref;
    },
    async discard(ref) {
      if (files.isObjectName(ref.name)) room.free(await files.removeObject(root, ref));
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
  /** False when there is no room for so many more bytes. */
  take(bytes: number): Promise<boolean>;
  free(bytes: number): void;
};

/** What this process knows of the bytes in use: measured once, counted from then on. */
function createRoom(root: string, maxBytes: number): Room {
  let used = 0;
  let measured: Promise<void> | null = null;
  const measure = async (): Promise<void> => {
    const found = await files.measure(root);
    used += found;
  };
  return {
    async take(bytes) {
      measured ??= measure();
      try {
        await measured;
      } catch (error) {
        measured = null;
        throw error;
      }
      if (used + bytes > maxBytes) return false;
      used += bytes;
      return true;
    },
    free(bytes) {
      used = Math.max(0, used - bytes);
    },
  };
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whatever kept the object from being written, no reference to it exists. */
function refuse(cause: unknown): never {
  if (cause instanceof CallboardError) throw cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code) ? 'The payload store is full.' : 'The payload could not be stored.';
  throw new CallboardError('payload_store_full', message, { cause });
}

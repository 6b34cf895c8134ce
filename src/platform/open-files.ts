/** Reads the limit of open files of the process, and divides it among sockets. */
import { readFileSync } from 'node:fs';
import { RESERVE_PART, type ShareBound } from '../core/shares/share-bounds.ts';

/** Returns how many files and sockets this process may have open. Null: no limit, or unknown (not Linux). */
export function descriptorLimit(): number | null {
  try {
    return readDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return null;
  }
}

/** Returns the soft limit in the text of `/proc/<pid>/limits`; null if it is `unlimited` or cannot be parsed. */
export function readDescriptorLimit(text: string): number | null {
  const [, soft] = /^Max open files +(\d+) /m.exec(text) ?? [];
  return soft === undefined ? null : Number(soft);
}

/**
 * The file descriptors reserved for Redis, files and other uses: RESERVED or this fraction of the limit, whichever is
 * more, but at most half of the limit.
 */
const RESERVED = 64;
const RESERVED_PART = 1 / 16;
/** The fraction of the remaining descriptors that is for sockets without a valid token. */
const UNAUTHENTICATED_PART = 1 / 8;

/**
 * Divides the limit of file descriptors into the number of sockets that may be open without a valid token, and the
 * total of the share `sockets`. Some descriptors remain for sockets that may be held beyond that total. Null: no limit.
 */
export function socketRoom(limit: number | null): { readonly unauthenticated: number; readonly total: number } {
  if (limit === null) return { unauthenticated: Infinity, total: Infinity };
  const room = Math.max(limit - Math.max(RESERVED, limit * RESERVED_PART), limit / 2);
  const unauthenticated = Math.max(1, Math.floor(room * UNAUTHENTICATED_PART));
  // Beyond the total, users may hold RESERVE_PART of it, and administrators as much again.
  return { unauthenticated, total: Math.max(1, Math.floor((room - unauthenticated) / (1 + 2 * RESERVE_PART))) };
}

/** Lowers the bounds of the share `sockets` so that they fit the process's limit of file descriptors. */
export function withinDescriptors({ guarantee, total }: ShareBound, limit: number | null): ShareBound {
  const room = Math.min(total ?? Infinity, socketRoom(limit).total);
  return room === Infinity ? { guarantee, total } : { guarantee: Math.min(guarantee, room), total: room };
}

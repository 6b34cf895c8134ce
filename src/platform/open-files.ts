/** Reads the process's limit of open files, and divides it among sockets. */
import { readFileSync } from 'node:fs';
import { RESERVE_PART, type ShareBound } from '../core/shares/share-bounds.ts';

/** Returns how many files and sockets this process may have open; null if unlimited or unknown (not Linux). */
export function descriptorLimit(): number | null {
  try {
    return readDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return null;
  }
}

/** Returns the soft limit in the text of `/proc/<pid>/limits`; null if `unlimited` or not to be parsed. */
export function readDescriptorLimit(text: string): number | null {
  const [, soft] = /^Max open files +(\d+) /m.exec(text) ?? [];
  return soft === undefined ? null : Number(soft);
}

/**
 * The descriptors that are kept for Redis, files and the like: at least RESERVED and this part of the limit, but at
 * most half of the limit.
 */
const RESERVED = 64;
const RESERVED_PART = 1 / 16;
/** The part of the rest that is for sockets without a valid token. */
const UNAUTHENTICATED_PART = 1 / 8;

/**
 * Divides a process's limit of descriptors: how many sockets may be open without a valid token, and the total of the
 * share `sockets`. Leaves descriptors for the sockets that may be held beyond that total. Null: unlimited.
 */
export function socketRoom(limit: number | null): { readonly unauthenticated: number; readonly total: number } {
  if (limit === null) return { unauthenticated: Infinity, total: Infinity };
  const room = Math.max(limit - Math.max(RESERVED, limit * RESERVED_PART), limit / 2);
  const unauthenticated = Math.max(1, Math.floor(room * UNAUTHENTICATED_PART));
  // Users and administrators may each hold one RESERVE_PART beyond the total.
  return { unauthenticated, total: Math.max(1, Math.floor((room - unauthenticated) / (1 + 2 * RESERVE_PART))) };
}

/** Lowers the bounds of the share `sockets` to the descriptors that a process with this limit has for them. */
export function withinDescriptors({ guarantee, total }: ShareBound, limit: number | null): ShareBound {
  const room = Math.min(total ?? Infinity, socketRoom(limit).total);
  return room === Infinity ? { guarantee, total } : { guarantee: Math.min(guarantee, room), total: room };
}

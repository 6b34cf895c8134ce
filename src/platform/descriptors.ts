/** Reads the limit of open files of this process. */
import { readFileSync } from 'node:fs';
import { RESERVE_PART, type ShareBound } from '../core/shares/bounds.ts';

/**
 * Returns how many files and sockets this process may have open; null if unlimited or unknown (on systems other than
 * Linux).
 */
export function descriptorLimit(): number | null {
  try {
    return readDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Returns the soft limit in the text of `/proc/<pid>/limits`; null if it is `unlimited` or the text cannot be parsed.
 */
export function readDescriptorLimit(text: string): number | null {
  const [, soft] = /^Max open files +(\d+) /m.exec(text) ?? [];
  return soft === undefined ? null : Number(soft);
}

/** The least number of descriptors, and the part of the limit, that are kept for Redis, files and the like. */
const RESERVED = 64;
const RESERVED_PART = 1 / 16;
/** The part of the rest that is for sockets without a valid token. */
const UNAUTHENTICATED_PART = 1 / 8;

/**
 * Divides a process's limit of descriptors: how many sockets may be open without a valid token, and the total of the
 * share `sockets`, which leaves descriptors for what may be held beyond a total. Null: unlimited.
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

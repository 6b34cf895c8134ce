/** Reads the limit of open files of this process. */
import { readFileSync } from 'node:fs';

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

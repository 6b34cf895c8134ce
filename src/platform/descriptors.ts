import { readFileSync } from 'node:fs';

/** How many files and sockets this process may have open, as Linux says it; null where it does not. */
export function descriptorLimit(): number | null {
  try {
    return readDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return null;
  }
}

/** The soft limit in the text of `/proc/<pid>/limits`. `unlimited` is null, like a text of another form. */
export function readDescriptorLimit(text: string): number | null {
  const [, soft] = /^Max open files +(\d+) /m.exec(text) ?? [];
  return soft === undefined ? null : Number(soft);
}

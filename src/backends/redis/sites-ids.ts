/**
 * Writes a partition into the ids of sessions, tokens and tickets, and reads it from such an id, so that each can be
 * found without its owner. Pure.
 */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Returns the text with which all ids of a partition begin: its number in base 64, padded to equal width. Returns '' if
 * there is only one partition.
 */
export function prefixOfPartition(partition: number, partitions: number): string {
  let prefix = '';
  for (let rest = partition, left = widthOf(partitions); left > 0; left--) {
    prefix = (DIGITS[rest % DIGITS.length] ?? '') + prefix;
    rest = Math.floor(rest / DIGITS.length);
  }
  return prefix;
}

/** Reads the partition from the start of an id; null if the id begins with no valid partition. */
export function partitionOfId(id: string, partitions: number): number | null {
  let partition = 0;
  for (const digit of id.slice(0, widthOf(partitions)).padEnd(widthOf(partitions), ' ')) {
    const value = DIGITS.indexOf(digit);
    if (value < 0) return null;
    partition = partition * DIGITS.length + value;
  }
  return partition < partitions ? partition : null;
}

function widthOf(partitions: number): number {
  let width = 0;
  for (let reach = 1; reach < partitions; reach *= DIGITS.length) width++;
  return width;
}

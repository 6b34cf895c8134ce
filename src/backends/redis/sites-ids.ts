/**
 * Writes the number of a partition into the ids of sessions, tokens and tickets, and reads it, so that they can be
 * found without knowing their owner. Pure functions.
 */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Returns the prefix of all ids of a partition: the number of the partition in base 64, padded to a fixed width.
 * Returns '' if there is only one partition.
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

/** Says to which partition a user, an id or a text belongs, and which process should own a partition. */
/** The partitions of a deployment. All relays compute the same ones. They are numbered from 0. */
export interface Placement {
  /** The number of partitions that users are divided into. */
  readonly count: number;
  /** The partition of the audit's chain, which has no users. */
  readonly audit: number;
  /** All users of an admission scope are in one partition. */
  ofUser(userId: string): number;
  /** The text that the ids of sessions, tokens and tickets of a user begin with. */
  prefixOf(userId: string): string;
  /** The partition that an id names. An id that names none belongs to one that does not know it. */
  ofId(id: string): number;
  /** The partition of a text that names nobody, such as the digest of a sign-in ticket. */
  ofText(text: string): number;
}

/** The characters of an id that name its partition: a number of this base. */
const PREFIX_CHARS = 2;
const PREFIX_BASE = 36;
const PREFIX = /^[0-9a-z]{2}/;
export const PARTITIONS_MAX = PREFIX_BASE ** PREFIX_CHARS;

/** Creates the placement. `scopeOf`: the admission scope of a user. `count`: 1 to PARTITIONS_MAX. */
export function createPlacement(count: number, scopeOf: (userId: string) => string): Placement {
  const ofText = (text: string): number => hashOf(text) % count;
  const ofUser = (userId: string): number => ofText(scopeOf(userId));
  return {
    count,
    audit: count,
    ofUser,
    prefixOf: (userId) => ofUser(userId).toString(PREFIX_BASE).padStart(PREFIX_CHARS, '0'),
    ofId(id) {
      const named = PREFIX.test(id) ? parseInt(id.slice(0, PREFIX_CHARS), PREFIX_BASE) : 0;
      return named < count ? named : 0;
    },
    ofText,
  };
}

/** The hash FNV-1a of a text's UTF-16 units. It divides users evenly and protects nothing. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

// Which process should own a partition.

/**
 * Returns the process that should own a partition: that of the greatest hash. All processes compute the same, and when one
 * joins or leaves, only its own partitions move. Null: there is no process.
 */
export function shouldOwn(partition: number, processes: Iterable<string>): string | null {
  let [best, most]: [string | null, number] = [null, -1];
  for (const process of processes) {
    const weight = mixed(hashOf(`${partition} ${process}`));
    if (weight > most || (weight === most && process > (best ?? ''))) [best, most] = [process, weight];
  }
  return best;
}

/** The last step of MurmurHash3: each bit of the hash changes about half of those of the result. */
function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** Computes the partition of a user, an id or a text, and the process that should own a partition. */
import type { Clock } from '../../core/ports.ts';

/**
 * The mapping of users, ids and texts to partitions, which are numbered from 0. All relays of a deployment compute the
 * same mapping.
 */
export interface Placement {
  /** The number of partitions that users are divided into. */
  readonly count: number;
  /** The partition of the audit's chain. It contains no users. */
  readonly audit: number;
  /** The numbers of the partitions that contain users. */
  readonly ofUsers: readonly number[];
  /** Returns the partition of a user. All users of an admission scope are in the same partition. */
  ofUser(userId: string): number;
  /** Returns the prefix of the ids of a user's sessions, tokens and tickets. */
  prefixOf(userId: string): string;
  /**
   * Returns the partition that an id names by its prefix. For an id without a valid prefix, returns any partition; none
   * knows such an id.
   */
  ofId(id: string): number;
  /** Returns the partition of a text that names no user, such as the digest of a sign-in ticket. */
  ofText(text: string): number;
}

/** The prefix of an id that names its partition: this many digits in this base. */
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
    ofUsers: Array.from({ length: count }, (_, partition) => partition),
    ofUser,
    prefixOf: (userId) => ofUser(userId).toString(PREFIX_BASE).padStart(PREFIX_CHARS, '0'),
    ofId(id) {
      const named = PREFIX.test(id) ? parseInt(id.slice(0, PREFIX_CHARS), PREFIX_BASE) : 0;
      return named < count ? named : 0;
    },
    ofText,
  };
}

/** The FNV-1a hash of a text's UTF-16 units. It distributes users evenly and has no security purpose. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

// Which process should own a partition.

/**
 * Returns the process that should own a partition: the one with the greatest hash (rendezvous hashing). All processes
 * compute the same result, and when a process joins or leaves, only its own partitions move. Null if there is no
 * process.
 */
export function shouldOwn(partition: number, processes: Iterable<string>): string | null {
  let [best, most]: [string | null, number] = [null, -1];
  for (const process of processes) {
    const weight = mixed(hashOf(`${partition} ${process}`));
    if (weight > most || (weight === most && process > (best ?? ''))) [best, most] = [process, weight];
  }
  return best;
}

/** The last step of MurmurHash3: changing one bit of the hash changes about half of the bits of the result. */
function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

// The moves of partitions between processes.

/** The number of links of each process. */
type Links = ReadonlyMap<string, number>;

/** What an owner knows about the deployment. */
export type PlacementView = {
  /** The living processes that may own partitions. */
  readonly processes: readonly string[];
  /** The owner of each partition, by partition number; null if no owner is known. */
  readonly owners: readonly (string | null)[];
};

/** The fraction of a partition's links that one process must hold so that the partition moves there, or stays there. */
const NEAR = { moves: 3 / 4, stays: 3 / 5 } as const;
/** The least number of links that one process must hold, besides that fraction: fewer links are not worth a move. */
const NEAR_LINKS = { moves: 8, stays: 4 } as const;
/** A process gets partitions because of links only up to this multiple of its fair share of the partitions. */
const MOST_SHARES = 1.5;

/**
 * Returns the process that should own a partition next; this may be the present owner. If one process holds nearly all
 * links of the partition and does not own far more than its share, that process is chosen; otherwise the hash decides.
 * `links`: the links of the partition; null if links are ignored.
 */
export function nextOwner(partition: number, owner: string, view: PlacementView, links: Links | null): string | null {
  const ofHash = shouldOwn(partition, view.processes);
  if (links === null) return ofHash;
  const total = links.values().reduce((sum, count) => sum + count, 0);
  const isNear = (process: string, how: keyof typeof NEAR): boolean => {
    const count = links.get(process) ?? 0;
    return count >= NEAR_LINKS[how] && count >= NEAR[how] * total;
  };
  const nearest = view.processes.find((process) => isNear(process, 'moves'));
  if (nearest !== undefined && nearest !== owner && hasShareFor(nearest, view)) return nearest;
  const stays = isNear(owner, 'stays') && ownedBy(owner, view) <= mostOwned(view);
  return stays ? owner : ofHash;
}

/** Whether a process may own one more partition because of its links. */
export function hasShareFor(process: string, view: PlacementView): boolean {
  return ownedBy(process, view) < mostOwned(view);
}

function ownedBy(process: string, { owners }: PlacementView): number {
  return owners.filter((owner) => owner === process).length;
}

function mostOwned({ owners, processes }: PlacementView): number {
  return Math.ceil((MOST_SHARES * owners.length) / processes.length);
}

/**
 * SETTLED_LEASES: for how many leases links must have stayed with a process before a partition follows them.
 * PACE_LEASES: the least number of leases between two such moves.
 */
const SETTLED_LEASES = 24;
const PACE_LEASES = 4;

type MovesOptions = {
  /** The id of this process. */
  readonly process: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly leaseMs: number;
};

/** A partition of this process. `countLinks` is expensive: it reads all connections of the partition. */
type CountedPartition = { readonly number: number; countLinks(): Links };

/**
 * Decides which partition of this process moves next. Moves that follow links are rate-limited, and begin only when the
 * links have stayed in one place for a while, because after the death or the start of a relay its links are elsewhere
 * for a short time.
 */
export class Moves {
  readonly #options: MovesOptions;
  /** The last counted links of the partitions of this process; null if links are ignored. */
  #links: Map<number, Links> | null = null;
  /** The wish of each partition to follow its links: the process to move to, and since when, by elapsed time. */
  readonly #wishes = new Map<number, { readonly to: string; readonly since: number }>();
  #turn = 0;
  #movedAt = -Infinity;

  constructor(options: MovesOptions) {
    this.#options = options;
  }

  /** Counts the links of each partition of this process that is new, and of one more partition, in rotation. */
  count(owned: readonly CountedPartition[]): void {
    const before = this.#links;
    const again = owned[this.#turn++ % owned.length];
    this.#links = new Map(
      owned.map((partition) => {
        const known = partition === again ? undefined : before?.get(partition.number);
        return [partition.number, known ?? partition.countLinks()];
      }),
    );
  }

  /** Ignores links from now on. Call it when clients connect to the owners of their users by themselves. */
  countNone(): void {
    this.#links = null;
    this.#wishes.clear();
  }

  /** Returns the first partition that should move now, with its next owner; null if none should move. */
  next(owned: readonly { readonly number: number }[], view: PlacementView) {
    const { process } = this.#options;
    for (const { number } of owned) {
      const to = this.ownerOf(number, view);
      if (to === null || to === process || to === shouldOwn(number, view.processes)) this.#wishes.delete(number);
      if (to !== null && to !== process && this.#isTime(number, to, view)) return { partition: number, to };
    }
    return null;
  }

  /** Returns the process that should own a partition that this process owns now. */
  ownerOf(partition: number, view: PlacementView): string | null {
    return nextOwner(partition, this.#options.process, view, this.#links?.get(partition) ?? null);
  }

  /** Whether this process accepts a partition that another process wants to give to it. */
  mayTake(partition: number, view: PlacementView): boolean {
    const { process } = this.#options;
    return this.#links === null || shouldOwn(partition, view.processes) === process || hasShareFor(process, view);
  }

  /** Notes that a partition was given away. */
  gave(partition: number): void {
    if (this.#wishes.delete(partition)) this.#movedAt = this.#options.clock.monotonic();
  }

  #isTime(partition: number, to: string, { processes }: PlacementView): boolean {
    if (to === shouldOwn(partition, processes)) return true;
    const { clock, leaseMs } = this.#options;
    const now = clock.monotonic();
    const known = this.#wishes.get(partition);
    const wish = known?.to === to ? known : { to, since: now };
    this.#wishes.set(partition, wish);
    return now - wish.since >= SETTLED_LEASES * leaseMs && now - this.#movedAt >= PACE_LEASES * leaseMs;
  }
}

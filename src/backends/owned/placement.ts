/** Says to which partition a user, an id or a text belongs, and which process should own a partition. */
import type { Clock } from '../../core/ports.ts';

/** The partitions of a deployment. All relays compute the same ones. They are numbered from 0. */
export interface Placement {
  /** The number of partitions that users are divided into. */
  readonly count: number;
  /** The partition of the audit's chain, which has no users. */
  readonly audit: number;
  /** The numbers of the partitions that have users. */
  readonly ofUsers: readonly number[];
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

// Where partitions move to.

/** The number of links of each process. */
type Links = ReadonlyMap<string, number>;

/** What an owner sees of the deployment. */
export type PlacementView = {
  /** The living processes that may own partitions. */
  readonly processes: readonly string[];
  /** The owners of all partitions, by partition; null: none is known. */
  readonly owners: readonly (string | null)[];
};

/** Which part of the links of a partition must be with a process so that it moves there, and so that it stays there. */
const NEAR = { moves: 3 / 4, stays: 3 / 5 } as const;
/** The same in links: what has fewer is not worth a move. */
const NEAR_LINKS = { moves: 8, stays: 4 } as const;
/** How many times its share of the partitions a process owns at most because of links. */
const MOST_SHARES = 1.5;

/**
 * Returns the process that should own a partition of `owner` next; it may be `owner` itself. If one process has nearly all
 * links of the partition, and does not own far more than its share, it is that one; otherwise the hash chooses. `links`:
 * those of the partition; null: links do not count.
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

/** For how many leases a partition must want to move to its links, and how many leases are between two such moves. */
const SETTLED_LEASES = 24;
const PACE_LEASES = 4;

type MovesOptions = {
  /** This process. */
  readonly process: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly leaseMs: number;
};

/** A partition of this process. `countLinks` reads all its connections. */
type CountedPartition = { readonly number: number; countLinks(): Links };

/**
 * Decides which partition of this process moves next. Moves to where links are have a pace, and begin only when links
 * have stayed there for a while: after the death or the start of a relay they are with others for a short time.
 */
export class Moves {
  readonly #options: MovesOptions;
  /** The links of the partitions of this process, as they were counted last; null: they do not count. */
  #links: Map<number, Links> | null = null;
  /** Since when a partition should move to where its links are. */
  readonly #wishes = new Map<number, { readonly to: string; readonly since: number }>();
  #turn = 0;
  #movedAt = -Infinity;

  constructor(options: MovesOptions) {
    this.#options = options;
  }

  /** Counts the links of partitions of this process: of those that are new, and of one more, in turns. */
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

  /** Links do not count, because they go to the owners of their users themselves. */
  countNone(): void {
    this.#links = null;
    this.#wishes.clear();
  }

  /** Returns the first partition that should move now, and its next owner; null: none should. */
  next(owned: readonly { readonly number: number }[], view: PlacementView) {
    const { process } = this.#options;
    for (const { number } of owned) {
      const to = this.ownerOf(number, view);
      if (to === null || to === process || to === shouldOwn(number, view.processes)) this.#wishes.delete(number);
      if (to !== null && to !== process && this.#isTime(number, to, view)) return { partition: number, to };
    }
    return null;
  }

  /** Returns the process that should own a partition of this one. */
  ownerOf(partition: number, view: PlacementView): string | null {
    return nextOwner(partition, this.#options.process, view, this.#links?.get(partition) ?? null);
  }

  /** Whether this process may take over a partition that another one wants to give to it. */
  mayTake(partition: number, view: PlacementView): boolean {
    const { process } = this.#options;
    return this.#links === null || shouldOwn(partition, view.processes) === process || hasShareFor(process, view);
  }

  /** Notes that a partition was given to another process. */
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

/**
 * The names of the keys in Redis, and the partition of a scope.
 *
 * All keys of a slot group are in one slot of a cluster, so that one call can write the logs of all its partitions.
 */
import calculateSlot from 'cluster-key-slot';
import { tagsOf } from '../redis/keys.ts';

/**
 * How users are divided into partitions. It must be the same in all processes: its text (`map`) is stored in Redis, and
 * each call compares it. `digest`: a digest of the rule that assigns users to scopes.
 */
type Division = { readonly partitions: number; readonly groups: number; readonly digest: string };

/** The keys of one partition and of its slot group. */
export type PartitionKeys = {
  /** STRING: the division of users. */
  readonly map: string;
  /** STRING: the fence. */
  readonly fence: string;
  /** STREAM: the batches of facts. The id of an entry is the number of the batch. */
  readonly log: string;
  /** STRING: the name of the valid snapshot, and the number of the last batch that it replaces. */
  readonly snapshotAt: string;
  /** LIST: the pieces of a snapshot. */
  readonly snapshot: (name: string) => string;
  /** STRING that expires with the lease of a process. While it exists, the process is alive. */
  readonly live: (processId: string) => string;
  /** SET: the processes that were alive recently. Only the set of the first slot group is used. */
  readonly processes: string;
  /**
   * STRING with an expiry: the report of a process about its node. Only the reports of the first slot group are used.
   */
  readonly report: (processId: string) => string;
};

/** The kinds of keys, with the rule by which each is removed, as in `KINDS` of the Redis backend. */
export const OWNED_KINDS = {
  map: 'kept',
  fence: 'kept',
  log: 'kept',
  snapat: 'kept',
  snap: 'emptied',
  live: 'ttl',
  processes: 'emptied',
  report: 'ttl',
} as const;

export class Keys {
  readonly division: Division;
  readonly #tags: readonly string[];

  constructor(namespace: string, division: Division) {
    this.division = division;
    this.#tags = tagsOf(namespace, division.groups);
  }

  /** The text of the division, as it is stored in Redis. */
  get map(): string {
    const { partitions, groups, digest } = this.division;
    return `${partitions} ${groups} ${digest}`;
  }

  /** The number of slot groups that contain partitions, including the audit's. They are the first groups. */
  get usedGroups(): number {
    return Math.min(this.division.groups, this.division.partitions + 1);
  }

  /**
   * Returns the channel for mail to one process that is published in a slot group. A script can only publish in its own
   * slot.
   */
  mailOf(processId: string, group: number): string {
    return `${this.#tags[group]}:mail:${processId}`;
  }

  /**
   * Returns the slot group for mail to a process that may be published in any group. It is always the same group, which
   * keeps the mail in order.
   */
  mailGroupOf(processId: string): number {
    return calculateSlot(processId) % this.usedGroups;
  }

  /** The channel of mail to all processes, in the first slot group. */
  get mailToAll(): string {
    return `${this.#tags[0]}:mail`;
  }

  groupOf(partition: number): number {
    return partition % this.division.groups;
  }

  /** Returns the partition of a scope, by its hash. */
  partitionOf(scopeHash: string): number {
    return calculateSlot(scopeHash) % this.division.partitions;
  }

  ofGroup(group: number): Pick<PartitionKeys, 'map' | 'live' | 'processes' | 'report'> {
    const tag = this.#tags[group];
    if (tag === undefined) throw new Error(`there is no slot group ${group}`);
    return {
      map: `${tag}:map`,
      live: (processId) => `${tag}:live:${processId}`,
      processes: `${tag}:processes`,
      report: (processId) => `${tag}:report:${processId}`,
    };
  }

  of(partition: number): PartitionKeys {
    const group = this.groupOf(partition);
    const tag = this.#tags[group] ?? '';
    return {
      ...this.ofGroup(group),
      fence: `${tag}:fence:${partition}`,
      log: `${tag}:log:${partition}`,
      snapshotAt: `${tag}:snapat:${partition}`,
      snapshot: (name) => `${tag}:snap:${partition}:${name}`,
    };
  }
}

/**
 * Makes the names of the keys in Redis, and finds the partition of a scope. All keys of a slot group are in one slot of a
 * cluster, so one call writes the logs of all its partitions.
 */
import calculateSlot from 'cluster-key-slot';
import { tagsOf } from '../redis/keys.ts';

/**
 * How users are divided. It must be the same for all processes: `map` is its text, which Redis has and each call compares.
 * `digest`: of the rule that gives users their scopes.
 */
type Division = { readonly partitions: number; readonly groups: number; readonly digest: string };

/** The keys of one partition, and of the slot group that it is in. */
export type PartitionKeys = {
  /** STRING: the division of users. */
  readonly map: string;
  /** STRING: the fence. */
  readonly fence: string;
  /** STREAM: the batches of facts, each by its number. */
  readonly log: string;
  /** STRING: the name of the snapshot that counts, and the number of the last batch that it replaces. */
  readonly snapshotAt: string;
  /** LIST: the pieces of a snapshot. */
  readonly snapshot: (name: string) => string;
  /** STRING with the lease of a process as its expiry: the process is alive. */
  readonly live: (processId: string) => string;
  /** SET: the processes that were alive lately. That of the first slot group counts. */
  readonly processes: string;
  /** STRING with an expiry: what a process reports of its node. Those of the first slot group count. */
  readonly report: (processId: string) => string;
};

/** The kinds of keys, and when each is removed, as in `KINDS` of the Redis backend. */
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

  /** The text of the division. */
  get map(): string {
    const { partitions, groups, digest } = this.division;
    return `${partitions} ${groups} ${digest}`;
  }

  /** The number of slot groups that have partitions, with that of the audit. They are the first ones. */
  get usedGroups(): number {
    return Math.min(this.division.groups, this.division.partitions + 1);
  }

  /** The channel of mail to one process that is published in a slot group: a script publishes in its own slot. */
  mailOf(processId: string, group: number): string {
    return `${this.#tags[group]}:mail:${processId}`;
  }

  /** The slot group in which mail to a process is published if any will do: the same one each time, to keep its order. */
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

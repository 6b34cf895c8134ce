/**
 * Gives the stores of the Redis backend their access to Redis: it runs acts and reads in a partition. Only mailboxes
 * and the bus use a connection directly.
 */
import { BoundedMap } from '../../../core/bounded-map.ts';
import { createBatches } from './batches.ts';
import { hashOf, keyOf, partitionOf, tagsOf, type KeyKind } from '../keys.ts';
import type { Programs } from '../program/program.ts';
import { createReads } from './reads.ts';
import type { Client, Identity, ReadCommand, Reply, Verdict } from '../types.ts';

export type StoreOptions = {
  readonly client: Client;
  readonly programs: Programs;
  readonly namespace: string;
  readonly partitions: number;
  readonly sha256: (text: string) => string;
  /** Returns the admission scope of a user. It is fixed for a namespace. */
  readonly scopeOf: (userId: string) => string;
  /** Called with each error of Redis: an act's, a read's, or the connection's. */
  readonly failed?: ((error: unknown) => void) | undefined;
  /** For tests: returns the time that acts use instead of the time of Redis, epoch milliseconds. */
  readonly time?: (() => number) | undefined;
};

/**
 * Runs acts, each of which is atomic, and lists of reads. All that is requested in one tick is sent together, so an act
 * or a list takes at most one round trip.
 */
export interface Store {
  readonly namespace: string;
  readonly partitions: number;
  /** Returns the partition of a user: 0 to partitions - 1. */
  partitionOfUser(userId: string): number;
  /** Returns the name of a key in a partition. */
  key(partition: number, kind: KeyKind, hash?: string): string;
  hash(...texts: readonly string[]): string;
  /**
   * Runs an act of the program. Its arguments are texts and numbers; null is sent as ''. Acts of one tick and partition
   * are sent together and run in the order of the calls. Throws `store_unavailable` if Redis does not answer (the act
   * may have run; every act can be repeated) or refuses the node.
   */
  act(partition: number, name: string, args: readonly (string | number | null)[]): Promise<Reply>;
  /**
   * Reads keys of one partition in one round trip. Returns one answer per command, in order. Throws
   * `store_unavailable`.
   */
  read(commands: readonly ReadCommand[]): Promise<readonly Reply[]>;
  /** Like `read`, but in every partition at the same time. Returns one list of answers for each partition. */
  readAll(commands: (partition: number) => readonly ReadCommand[]): Promise<readonly (readonly Reply[])[]>;
  /** Makes all later calls to this partition as this node, or as no node (null). */
  identify(partition: number, identity: Identity | null): void;
  /**
   * Says whether some node listened to hints of this partition's commands when the last act was answered. True before
   * the first answer.
   */
  watched(partition: number): boolean;
  /** Adds a listener, which is called whenever a call was refused because of its node. */
  onVerdict(listener: (partition: number, verdict: Verdict) => void): void;
  /**
   * The number of round trips so far. A call of acts or a pipeline of reads counts once in each partition that it is
   * sent to.
   */
  readonly roundTrips: number;
}

export function createStore(options: StoreOptions): Store {
  const { client, namespace, partitions, sha256, scopeOf } = options;
  const tags = tagsOf(namespace, partitions);
  const digest = cached(sha256);
  const hash = (...texts: readonly string[]): string => hashOf(digest, ...texts);
  const key = (partition: number, kind: KeyKind, part?: string): string => keyOf(tags[partition] ?? '', kind, part);
  const state = { trips: 0 };
  const counted = (): void => void state.trips++;
  const batches = createBatches({ ...options, metaOf: (partition) => key(partition, 'meta'), counted });
  const read = createReads({ client, counted, failed: options.failed });
  return {
    namespace,
    partitions,
    partitionOfUser: (userId) => (partitions === 1 ? 0 : partitionOf(hash(scopeOf(userId)), partitions)),
    key,
    hash,
    act: (partition, name, args) => batches.add(partition, name, args),
    read,
    readAll: (commands) => Promise.all(tags.map((_, partition) => read(commands(partition)))),
    identify: batches.identify,
    watched: batches.watched,
    onVerdict: batches.onVerdict,
    get roundTrips() {
      return state.trips;
    },
  };
}

/** The most hashes in the cache. Each act on a command needs the hashes of its client and its user. */
const CACHED_HASHES = 10_000;

function cached(digest: (text: string) => string): (text: string) => string {
  const known = new BoundedMap<string, string>({ most: CACHED_HASHES });
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const made = digest(text);
    known.set(text, made);
    return made;
  };
}

/**
 * Runs acts and reads in the partitions of Redis, for all stores of the Redis backend.
 *
 * Besides the checks at the start, only mailboxes and the bus use a connection directly.
 */
import type { Client } from './client.ts';
import { hashOf, KeyNames, partitionOf, tagsOf, type KeyKind } from './keys.ts';
import type { Programs } from './program/program.ts';
import type { ReadCommand, Reply } from './replies.ts';
import { createProgramCalls, type ProgramCalls } from './program-calls.ts';
import { createReads } from './store-reads.ts';

export type StoreOptions = {
  readonly client: Client;
  readonly programs: Programs;
  readonly namespace: string;
  readonly partitions: number;
  readonly sha256: (text: string) => string;
  /** Returns the admission scope of a user, which never changes for a namespace. */
  readonly scopeOf: (userId: string) => string;
  /** Called with each error of Redis, from acts, reads and the connection. */
  readonly failed?: ((error: unknown) => void) | undefined;
  /** For tests: the time that acts use instead of the time of Redis, in epoch milliseconds. */
  readonly time?: (() => number) | undefined;
};

/**
 * Runs acts, each of which is atomic, and lists of reads. The requests of one tick to one partition are sent together.
 * An act or a list takes one round trip; an act takes two if Redis does not have its program yet.
 */
export interface Store extends Omit<ProgramCalls, 'add'> {
  readonly namespace: string;
  readonly partitions: number;
  /** Returns the partition of a user, from 0 to `partitions` - 1. */
  partitionOfUser(userId: string): number;
  /** Returns the name of a key in a partition. `part` and `more` must be hashes, or texts that no user chose. */
  key(partition: number, kind: KeyKind, part?: string, more?: string): string;
  /** Returns the hash of several texts, as `hashOf` computes it. */
  hash(first: string, ...others: readonly string[]): string;
  /**
   * Runs an act of the program. Arguments are texts and numbers; null is sent as ''. Acts of one tick and partition are
   * sent together and run in the order of the calls. Throws `store_unavailable` if Redis refuses the node or does not
   * answer; in the latter case the act may have run, and may be repeated. Throws `store_full` if Redis has no memory
   * for the act. Throws `internal` if the act fails.
   */
  act(partition: number, name: string, args: readonly (string | number | null)[]): Promise<Reply>;
  /**
   * Reads keys of one partition in one round trip. Returns one answer per command, in order. Throws
   * `store_unavailable`.
   */
  read(commands: readonly ReadCommand[]): Promise<readonly Reply[]>;
  /** Does the same as `read` in every partition at the same time. Returns one list of answers for each partition. */
  readAll(commands: (partition: number) => readonly ReadCommand[]): Promise<readonly (readonly Reply[])[]>;
  /** The number of round trips so far. A call of acts, or a pipeline of reads, counts once for each partition. */
  readonly roundTrips: number;
}

export function createStore(options: StoreOptions): Store {
  const { client, namespace, partitions, sha256, scopeOf } = options;
  const tags = tagsOf(namespace, partitions);
  const hash = cachedHashes(sha256);
  const names = tags.map((tag) => new KeyNames(tag));
  const key: Store['key'] = (partition, kind, part, more) => {
    const own = names[partition];
    if (!own) throw new Error(`There is no partition ${partition}.`);
    return own.of(kind, part, more);
  };
  const state = { trips: 0 };
  const counted = (): void => void state.trips++;
  const calls = createProgramCalls({ ...options, metaOf: (partition) => key(partition, 'meta'), counted });
  const read = createReads({ client, counted, failed: options.failed });
  return {
    namespace,
    partitions,
    partitionOfUser: (userId) => (partitions === 1 ? 0 : partitionOf(hash(scopeOf(userId)), partitions)),
    key,
    hash,
    act: (partition, name, args) => calls.add(partition, name, args),
    read,
    readAll: (commands) => Promise.all(tags.map((_, partition) => read(commands(partition)))),
    transact: calls.transact,
    callerOf: calls.callerOf,
    identify: calls.identify,
    watched: calls.watched,
    onVerdict: calls.onVerdict,
    get roundTrips() {
      return state.trips;
    },
  };
}

/** The most hashes in the cache. Each act on a command needs the hashes of its client and its user. */
const CACHED_HASHES = 10_000;
/**
 * The longest text, in characters, whose hash is cached. The cache keeps the texts, and an advertisement may have a
 * megabyte.
 */
const CACHED_CHARS = 1_000;

/**
 * Returns `hashOf` with a cache of the hashes of one text and of two texts. The cache is emptied when it is full. It
 * looks up the texts one after another, which costs less than joining and hashing them.
 */
function cachedHashes(sha256: (text: string) => string): Store['hash'] {
  let size = 0;
  const ofOne = new Map<string, string>();
  const ofTwo = new Map<string, Map<string, string>>();
  const keep = (hash: string, first: string, second: string | undefined): void => {
    if (size++ >= CACHED_HASHES) {
      ofOne.clear();
      ofTwo.clear();
      size = 1;
    }
    if (second === undefined) return void ofOne.set(first, hash);
    const pairs = ofTwo.get(first) ?? new Map<string, string>();
    ofTwo.set(first, pairs.set(second, hash));
  };
  return (first, second?: string, ...others) => {
    const found = second === undefined ? ofOne.get(first) : ofTwo.get(first)?.get(second);
    if (found !== undefined && others.length === 0) return found;
    const texts = second === undefined ? [first] : [first, second, ...others];
    const made = hashOf(sha256, ...texts);
    if (texts.length < 3 && texts.every((text) => text.length <= CACHED_CHARS)) keep(made, first, second);
    return made;
  };
}

/**
 * Gives the stores of the Redis backend their access to Redis: it runs acts and reads in a partition. Besides the
 * checks at the start, only mailboxes and the bus use a connection directly.
 */
import { Command } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';
import { hashOf, KeyNames, partitionOf, tagsOf, type KeyKind } from './keys.ts';
import type { Program, Programs } from './program/program.ts';
import { isRefusal } from './rights.ts';
import {
  unavailable,
  type Client,
  type Identity,
  type ReadCommand,
  type Reply,
  type StoreFrame,
  type Verdict,
} from './client.ts';

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
 * Runs acts, each of which is atomic, and lists of reads. The requests of one tick to a partition are sent together. An
 * act or a list takes one round trip; an act takes two if Redis does not have its program yet.
 */
export interface Store {
  readonly namespace: string;
  readonly partitions: number;
  /** Returns the partition of a user: 0 to partitions - 1. */
  partitionOfUser(userId: string): number;
  /** Returns the name of a key in a partition. `part` and `more`: hashes, or texts that no user chose. */
  key(partition: number, kind: KeyKind, part?: string, more?: string): string;
  /** Returns the hash of texts, as `hashOf` computes it. */
  hash(first: string, ...others: readonly string[]): string;
  /**
   * Runs an act of the program. Its arguments are texts and numbers; null is sent as ''. Acts of one tick and partition
   * are sent together and run in the order of the calls. Throws `store_unavailable` if Redis does not answer (the act
   * may have run; every act can be repeated) or refuses the node; `store_full` if Redis has no memory for it;
   * `internal` if the act fails.
   */
  act(partition: number, name: string, args: readonly (string | number | null)[]): Promise<Reply>;
  /**
   * Reads keys of one partition in one round trip. Returns one answer per command, in order. Throws
   * `store_unavailable`.
   */
  read(commands: readonly ReadCommand[]): Promise<readonly Reply[]>;
  /** Like `read`, but in every partition at the same time. Returns one list of answers for each partition. */
  readAll(commands: (partition: number) => readonly ReadCommand[]): Promise<readonly (readonly Reply[])[]>;
  /**
   * Runs the program of transactions in a partition as the calling node. `words`: its arguments. Throws
   * `store_unavailable` as `act` does, and `store_full`.
   */
  transact(
    partition: number,
    program: Program,
    words: (frame: StoreFrame) => readonly string[],
  ): Promise<readonly Reply[]>;
  /** Returns the node as which calls to this partition are made; null: as none. */
  callerOf(partition: number): Identity | null;
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
  const hash = cachedHashes(sha256);
  const names = tags.map((tag) => new KeyNames(tag));
  const key: Store['key'] = (partition, kind, part, more) => {
    const own = names[partition];
    if (!own) throw new Error(`There is no partition ${partition}.`);
    return own.of(kind, part, more);
  };
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
    transact: batches.transact,
    callerOf: batches.callerOf,
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
/**
 * The most characters of a text whose hash is cached. The cache keeps the texts, and an advertisement may be a
 * megabyte.
 */
const CACHED_CHARS = 1_000;

/**
 * Returns `hashOf` with a cache of the hashes of one text and of two, which is emptied when it is full. It looks up the
 * texts themselves, because to join and to hash them costs more than the look-up.
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

// Sends the acts of a tick to Redis as calls of a program, and gives each act its answer.

/**
 * The most acts in one call, and the most characters of their arguments. Such a call takes about 2 ms, during which
 * Redis answers no other request.
 */
const MAX_ACTS = 32;
const MAX_CHARS = 256 * 1024;
/**
 * The most rows that the acts of one call read, by what their headers say (see LuaFile). A row takes up to 0.1 ms, so
 * such a call takes at most 10 ms. An act that states `all` never shares a call with another act that reads rows.
 */
export const MAX_ROWS = 64;

type Asked = {
  readonly name: string;
  readonly args: readonly string[];
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: CallboardError) => void;
};
/**
 * The calling node, the number of the last call that it sent, and that of the last call that Redis confirmed. If Redis
 * lost a write, the number that it has is lower than `confirmed`.
 */
type Caller = { readonly identity: Identity; sent: number; confirmed: number };

type BatchOptions = {
  readonly client: Client;
  readonly programs: Programs;
  readonly time?: (() => number) | undefined;
  readonly metaOf: (partition: number) => string;
  readonly counted: () => void;
  /** Called with each error of Redis. */
  readonly failed?: ((error: unknown) => void) | undefined;
};

type Batches = {
  add(partition: number, name: string, args: readonly (string | number | null)[]): Promise<Reply>;
  transact: Store['transact'];
  callerOf: Store['callerOf'];
  identify(partition: number, identity: Identity | null): void;
  /**
   * Says whether some node listened to hints of this partition's commands when Redis answered last. True before the
   * first answer.
   */
  watched(partition: number): boolean;
  onVerdict(listener: (partition: number, verdict: Verdict) => void): void;
};

/**
 * Collects the acts of a tick. The acts of one partition and class are sent as one call of a program, or as several
 * calls if there are many.
 */
function createBatches(options: BatchOptions): Batches {
  const { programs } = options;
  const queues = new Map<string, { partition: number; asked: Asked[] }>();
  const callers = new Map<number, Caller>();
  const listeners: ((partition: number, verdict: Verdict) => void)[] = [];
  const unwatched = new Set<number>();
  let scheduled = false;
  const flush = (): void => {
    scheduled = false;
    const all = [...queues.values()];
    queues.clear();
    for (const { partition, asked } of all)
      for (const part of parts(asked, programs)) {
        const program = programs.programFor(part.map(({ name }) => name));
        const call = { partition, program, asked: part, caller: callers.get(partition), unwatched };
        void run(options, call).then((verdict) => {
          if (verdict) for (const listener of listeners) listener(partition, verdict);
        });
      }
  };
  return {
    add(partition, name, args) {
      const of = programs.classOf.get(name);
      if (!of) throw new Error(`There is no act "${name}".`);
      const { promise, resolve, reject } = Promise.withResolvers<Reply>();
      const place = `${partition} ${of}`;
      const queue = queues.get(place) ?? { partition, asked: [] };
      queues.set(place, queue);
      queue.asked.push({ name, args: args.map((arg) => (arg === null ? '' : String(arg))), resolve, reject });
      if (!scheduled) setImmediate(flush);
      scheduled = true;
      return promise;
    },
    async transact(partition, program, words) {
      const caller = callers.get(partition);
      const { nodeId, epoch } = caller?.identity ?? { nodeId: '', epoch: 0 };
      const number = caller ? ++caller.sent : 0;
      const time = options.time ? String(options.time()) : '';
      const argv = words({ node: nodeId, epoch, number, confirmed: caller?.confirmed ?? 0, time });
      try {
        options.counted();
        const reply = await evalProgram(options.client, program, options.metaOf(partition), argv);
        const [verdict] = reply;
        if (verdict === 'FENCED' || verdict === 'LOST') {
          for (const listener of listeners) listener(partition, verdict);
          throw new Error(`the store refused this node: ${verdict}`);
        }
        if (verdict === 'WATCHED') unwatched.delete(partition);
        else if (verdict === 'OK') unwatched.add(partition);
        // With `CLOCK`, Redis refused the relay's time before it recorded the number of the call.
        if (caller && verdict !== 'CLOCK') caller.confirmed = Math.max(caller.confirmed, number);
        return reply;
      } catch (error) {
        options.failed?.(error);
        throw unavailable(error);
      }
    },
    callerOf: (partition) => callers.get(partition)?.identity ?? null,
    identify(partition, identity) {
      if (identity === null) callers.delete(partition);
      else callers.set(partition, { identity, sent: 0, confirmed: 0 });
    },
    watched: (partition) => !unwatched.has(partition),
    onVerdict: (listener) => void listeners.push(listener),
  };
}

type Call = {
  readonly partition: number;
  readonly program: Program;
  readonly asked: readonly Asked[];
  readonly caller: Caller | undefined;
  /** Partitions in which no node listens to hints of commands. */
  readonly unwatched: Set<number>;
};

/**
 * Runs a call, and settles the promise of each act. Resolves to a verdict if the whole call was refused. Never rejects.
 */
async function run(options: BatchOptions, call: Call): Promise<Verdict | null> {
  const { asked, caller } = call;
  const number = caller ? ++caller.sent : 0;
  try {
    options.counted();
    const [verdict, ...replies] = await evaluate(options, call, number);
    if (verdict === 'FENCED' || verdict === 'LOST') {
      for (const { reject } of asked) reject(unavailable(new Error(`the store refused this node: ${verdict}`)));
      return verdict;
    }
    if (verdict === 'WATCHED') call.unwatched.delete(call.partition);
    else call.unwatched.add(call.partition);
    if (caller) caller.confirmed = Math.max(caller.confirmed, number);
    asked.forEach((one, i) => answer(one, replies[i] ?? null, options.failed));
  } catch (error) {
    options.failed?.(error);
    for (const { reject } of asked) reject(unavailable(error));
  }
  return null;
}

function answer({ name, resolve, reject }: Asked, reply: Reply, failed: BatchOptions['failed']): void {
  const [ok, value] = Array.isArray(reply) ? (reply as readonly Reply[]) : [0, 'no answer'];
  if (ok === 1) return resolve(value ?? null);
  const error = new Error(`${name}: ${String(value)}`);
  failed?.(error);
  reject(
    isRefusal(error.message) ? unavailable(error) : new CallboardError('internal', 'An act failed.', { cause: error }),
  );
}

async function evaluate(options: BatchOptions, call: Call, number: number): Promise<readonly Reply[]> {
  const { client, time, metaOf } = options;
  const { caller, asked, program, partition } = call;
  const requester = caller ? [caller.identity.nodeId, String(caller.identity.epoch)] : ['', ''];
  const frame = [time ? String(time()) : '', ...requester, String(number), String(caller?.confirmed ?? 0)];
  const acts = asked.flatMap(({ name, args }) => [name, String(args.length), ...args]);
  return evalProgram(client, program, metaOf(partition), [...frame, ...acts]);
}

async function evalProgram(
  client: Client,
  { sha, source }: Program,
  key: string,
  argv: readonly string[],
): Promise<readonly Reply[]> {
  try {
    return (await client.sendCommand(new ProgramCall(sha, key, argv))) as readonly Reply[];
  } catch (error) {
    // Redis does not persist its cache of scripts. If it does not have the program, the program is sent.
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await client.eval(source, 1, key, ...argv)) as readonly Reply[];
  }
}

/**
 * A call of a program, with some 200 arguments. ioredis copies the arguments of a command several times, and counts the
 * bytes of each; this command is given the key alone, by which a cluster finds the node, and writes the others itself.
 */
class ProgramCall extends Command {
  readonly #words: readonly string[];

  constructor(sha: string, key: string, argv: readonly string[]) {
    super('evalsha', [sha, '1', key], { replyEncoding: 'utf8' });
    this.#words = ['evalsha', sha, '1', key, ...argv];
  }

  override toWritable(): string | Buffer {
    const text = commandText(this.#words, (word) => word.length);
    // Nearly all texts are ASCII, which has as many bytes as characters.
    return Buffer.byteLength(text) === text.length
      ? Buffer.from(text, 'latin1')
      : commandText(this.#words, (word) => Buffer.byteLength(word));
  }
}

/** Returns a command as Redis reads it. `lengthOf`: returns how many bytes a word has. */
function commandText(words: readonly string[], lengthOf: (word: string) => number): string {
  let text = `*${words.length}\r\n`;
  for (const word of words) text += `$${lengthOf(word)}\r\n${word}\r\n`;
  return text;
}

/**
 * Divides the acts that are sent together into calls, in their order: at most MAX_ACTS, MAX_CHARS of arguments and
 * MAX_ROWS in each. An act that exceeds a bound alone has a call of its own. `rowsOf`: for each act that reads rows, how
 * many of its arguments stand for one row, or `all` if their number is not known before.
 */
function* parts(asked: readonly Asked[], { rowsOf }: Programs): Generator<readonly Asked[]> {
  let part: Asked[] = [];
  let [chars, rows] = [0, 0];
  for (const one of asked) {
    const length = one.args.reduce((sum, arg) => sum + arg.length, 0);
    const stated = rowsOf.get(one.name) ?? null;
    const own = stated === null ? 0 : stated === 'all' ? MAX_ROWS : Math.ceil(one.args.length / stated);
    if (part.length > 0 && (part.length === MAX_ACTS || chars + length > MAX_CHARS || rows + own > MAX_ROWS)) {
      yield part;
      part = [];
      [chars, rows] = [0, 0];
    }
    part.push(one);
    chars += length;
    rows += own;
  }
  if (part.length > 0) yield part;
}

// Sends the reads of a tick to Redis as pipelines, and gives each its answers.

/**
 * The most reads in a short list. A longer list is sent alone, so that the short lists of the same tick do not wait.
 */
const SHORT = 32;

type AskedRead = {
  readonly commands: readonly ReadCommand[];
  readonly resolve: (replies: readonly Reply[]) => void;
  readonly reject: (error: unknown) => void;
};

type ReadOptions = {
  readonly client: Client;
  readonly counted: () => void;
  /** Called with each error of Redis. */
  readonly failed?: ((error: unknown) => void) | undefined;
};

type Reads = (commands: readonly ReadCommand[]) => Promise<readonly Reply[]>;

/**
 * Collects the lists of reads of a tick. Those of one slot are sent as one pipeline, and each gets its own answers. All
 * keys of a list must be in one slot. Throws `store_unavailable`.
 */
function createReads(options: ReadOptions): Reads {
  const queues = new Map<string, AskedRead[]>();
  const flush = (): void => {
    const all = [...queues.values()];
    queues.clear();
    for (const asked of all) void runReads(options, asked);
  };
  return (commands) => {
    if (commands.length === 0) return Promise.resolve([]);
    const { promise, resolve, reject } = Promise.withResolvers<readonly Reply[]>();
    const asked = { commands, resolve, reject };
    const slot = slotOf(commands);
    if (slot === null || commands.length > SHORT) {
      void runReads(options, [asked]);
      return promise;
    }
    if (queues.size === 0) setImmediate(flush);
    const queue = queues.get(slot);
    if (queue) queue.push(asked);
    else queues.set(slot, [asked]);
    return promise;
  };
}

/**
 * Returns the hash tag of the first key, which decides its slot. Returns null for a key without a tag. Such a key is
 * not callboard's.
 */
function slotOf([first]: readonly ReadCommand[]): string | null {
  return /^\{([^}]+)\}/.exec(String(first?.[1] ?? ''))?.[1] ?? null;
}

/** Sends the lists of reads as one pipeline, and settles the promise of each list. Never rejects. */
async function runReads({ client, counted, failed }: ReadOptions, asked: readonly AskedRead[]): Promise<void> {
  try {
    counted();
    const all = asked.flatMap(({ commands }) => commands.map(([name, ...args]) => [name.toLowerCase(), ...args]));
    const replies = (await client.pipeline(all).exec()) ?? [];
    let at = 0;
    for (const { commands, resolve, reject } of asked) {
      const own = replies.slice(at, (at += commands.length));
      const error = own.find(([found]) => found)?.[0];
      if (error) {
        failed?.(error);
        reject(unavailable(error));
      } else resolve(own.map(([, reply]) => reply as Reply));
    }
  } catch (error) {
    failed?.(error);
    for (const { reject } of asked) reject(unavailable(error));
  }
}

/** Returns the partition of a user, or all partitions if no user is given. */
export function partitionsOf(
  store: Pick<Store, 'partitions' | 'partitionOfUser'>,
  userId: string | null = null,
): readonly number[] {
  return userId === null ? [...Array(store.partitions).keys()] : [store.partitionOfUser(userId)];
}

/** Sorts items by the bytes of their texts, as Redis sorts the members of an index by name. */
export function inByteOrder<T>(items: readonly T[], textOf: (item: T) => string): T[] {
  return items
    .map((item) => ({ item, bytes: Buffer.from(textOf(item)) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ item }) => item);
}

// Reads many keys at once from the partitions that have them.

type Keyed = { readonly userId: string };

/**
 * The read of one partition: `ask` gets at most `most` keys, and returns one answer per key, in their order.
 */
type Scatter<K extends Keyed, A> = {
  readonly most: number;
  readonly ask: (partition: number, some: readonly K[]) => Promise<readonly A[]>;
};

/** Reads keys of any partitions at the same time. Returns one answer per key, in the order of the keys. */
export async function scattered<K extends Keyed, A>(
  store: Pick<Store, 'partitionOfUser'>,
  keys: readonly K[],
  { most, ask }: Scatter<K, A>,
): Promise<A[]> {
  const found: A[] = [];
  const read = async (partition: number, some: readonly (readonly [at: number, key: K])[]): Promise<void> => {
    const answers = await ask(
      partition,
      some.map(([, key]) => key),
    );
    answers.forEach((answer, i) => {
      const place = some[i];
      if (place) found[place[0]] = answer;
    });
  };
  const reads: Promise<void>[] = [];
  for (const [partition, all] of Map.groupBy(keys.entries(), ([, { userId }]) => store.partitionOfUser(userId)))
    for (let at = 0; at < all.length; at += most) reads.push(read(partition, all.slice(at, at + most)));
  await Promise.all(reads);
  return found;
}

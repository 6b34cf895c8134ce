/** Sends acts to Redis: collects those of a tick into calls of a program, and hands each act its answer. */
import { Command } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';
import { unavailable, type Client } from './client.ts';
import type { Program, Programs } from './program/program.ts';
import type { Reply } from './replies.ts';
import { isRefusal } from './rights.ts';

/**
 * The most acts in one call, and the most characters of their arguments. Such a call takes about 2 ms, in which Redis
 * answers no other request.
 */
const MAX_ACTS = 32;
const MAX_CHARS = 256 * 1024;
/**
 * The most rows that the acts of one call read, according to their headers (see LuaFile). Reading a row takes up to 0.1
 * ms, so such a call takes at most about 10 ms. An act with the header `all` never shares a call with another act that
 * reads rows.
 */
export const MAX_ROWS = 64;

type PendingAct = {
  readonly name: string;
  readonly args: readonly string[];
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: CallboardError) => void;
};
/**
 * The calling node, the number of its last call that was sent, and the number of its last call that Redis confirmed. If
 * Redis stores a number below `confirmed`, it has lost a write.
 */
type Caller = { readonly identity: Identity; sent: number; confirmed: number };

type CallOptions = {
  readonly client: Client;
  readonly programs: Programs;
  readonly time?: (() => number) | undefined;
  readonly metaOf: (partition: number) => string;
  readonly counted: () => void;
  /** Called with each error of Redis. */
  readonly failed?: ((error: unknown) => void) | undefined;
};

/** The calls that write to a partition, as a node of the deployment. */
export type ProgramCalls = {
  add(partition: number, name: string, args: readonly (string | number | null)[]): Promise<Reply>;
  /**
   * Runs the program of transactions in a partition, as the calling node. `words`: returns the arguments. Throws
   * `store_unavailable` in the same cases as `act`, and `store_full`.
   */
  transact(
    partition: number,
    program: Program,
    words: (frame: StoreFrame) => readonly string[],
  ): Promise<readonly Reply[]>;
  /** Returns the node in whose name calls to this partition are made; null if there is none. */
  callerOf(partition: number): Identity | null;
  /** Sets the node in whose name all later calls to this partition are made; null: no node. */
  identify(partition: number, identity: Identity | null): void;
  /**
   * Whether some node listened to hints of this partition's commands when Redis answered the last act. True before the
   * first answer.
   */
  watched(partition: number): boolean;
  /** Adds a listener that is called whenever Redis refuses a call because of its node. */
  onVerdict(listener: (partition: number, verdict: Verdict) => void): void;
};

/**
 * Creates the calls. The acts of one tick, partition and class are sent as one call of a program, or as several if
 * there are many.
 */
export function createProgramCalls(options: CallOptions): ProgramCalls {
  const { programs } = options;
  const queues = new Map<string, { partition: number; asked: PendingAct[] }>();
  const callers = new Map<number, Caller>();
  const listeners: ((partition: number, verdict: Verdict) => void)[] = [];
  const unwatched = new Set<number>();
  let scheduled = false;
  const flush = (): void => {
    scheduled = false;
    const all = [...queues.values()];
    queues.clear();
    for (const { partition, asked } of all)
      for (const part of callBatches(asked, programs)) {
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
        // With `CLOCK`, Redis refused the relay's time before it stored the number of the call.
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
  readonly asked: readonly PendingAct[];
  readonly caller: Caller | undefined;
  /** The partitions in which no node listens to hints of commands. */
  readonly unwatched: Set<number>;
};

/**
 * Runs a call, and settles the promise of each act. Resolves to a verdict if the whole call was refused. Never rejects.
 */
async function run(options: CallOptions, call: Call): Promise<Verdict | null> {
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

export function answer({ name, resolve, reject }: PendingAct, reply: Reply, failed: CallOptions['failed']): void {
  const [ok, value] = Array.isArray(reply) ? (reply as readonly Reply[]) : [0, 'no answer'];
  if (ok === 1) return resolve(value ?? null);
  const error = new Error(`${name}: ${String(value)}`);
  failed?.(error);
  reject(
    isRefusal(error.message) ? unavailable(error) : new CallboardError('internal', 'An act failed.', { cause: error }),
  );
}

async function evaluate(options: CallOptions, call: Call, number: number): Promise<readonly Reply[]> {
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
    // Redis does not persist its script cache, so the program is sent if Redis does not have it.
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await client.eval(source, 1, key, ...argv)) as readonly Reply[];
  }
}

/**
 * A call of a program, with about 200 arguments. ioredis copies the arguments of a command several times and counts the
 * bytes of each. To avoid this, ioredis gets only the key, by which a cluster finds the node, and this class writes the
 * other arguments itself.
 */
class ProgramCall extends Command {
  readonly #words: readonly string[];

  constructor(sha: string, key: string, argv: readonly string[]) {
    super('evalsha', [sha, '1', key], { replyEncoding: 'utf8' });
    this.#words = ['evalsha', sha, '1', key, ...argv];
  }

  override toWritable(): string | Buffer {
    const text = commandText(this.#words, (word) => word.length);
    // Nearly all texts are ASCII, so the number of bytes equals the number of characters.
    return Buffer.byteLength(text) === text.length
      ? Buffer.from(text, 'latin1')
      : commandText(this.#words, (word) => Buffer.byteLength(word));
  }
}

/** Returns a command in the protocol of Redis. `lengthOf` returns the number of bytes of a word. */
function commandText(words: readonly string[], lengthOf: (word: string) => number): string {
  let text = `*${words.length}\r\n`;
  for (const word of words) text += `$${lengthOf(word)}\r\n${word}\r\n`;
  return text;
}

/**
 * Divides acts into calls, in order, with at most MAX_ACTS acts, MAX_CHARS characters of arguments and MAX_ROWS rows in
 * each. An act that exceeds a limit by itself gets a call of its own. `rowsOf`: for each act that reads rows, how many
 * of its arguments stand for one row, or `all` if the number is not known in advance.
 */
function* callBatches(asked: readonly PendingAct[], { rowsOf }: Programs): Generator<readonly PendingAct[]> {
  let part: PendingAct[] = [];
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

/** The calling node, with its epoch in this partition. */
export type Identity = { readonly nodeId: string; readonly epoch: number };
/**
 * The fields with which a transaction names the calling node. They are the same as in a call of acts (see
 * program/prelude.lua).
 */
export type StoreFrame = {
  readonly node: string;
  readonly epoch: number;
  readonly number: number;
  readonly confirmed: number;
  /** The time to use instead of the time of Redis, or ''. */
  readonly time: string;
};
/**
 * Why a call was refused. `FENCED`: the node's epoch is no longer valid. `LOST`: the store has lost a confirmed write.
 */
export type Verdict = 'FENCED' | 'LOST';

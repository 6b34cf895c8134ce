/** Sends the acts of a tick to Redis as calls of a program, and gives each act its answer. */
import { CallboardError } from '../../../core/errors.ts';
import type { Program, Programs } from '../program/program.ts';
import { isRefusal } from '../start-check/rights.ts';
import { unavailable, type Client, type Identity, type Reply, type Verdict } from '../types.ts';

/**
 * The most acts in one call, and the most characters of their arguments. Such a call takes about 2 ms, during which
 * Redis answers no other request.
 */
const MAX_ACTS = 32;
const MAX_CHARS = 256 * 1024;
/**
 * The most rows that the acts of one call read, by what their headers say (see LuaFile). A row takes up to 0.1 ms, so
 * such a call takes at most 10 ms. An act that states `all` is sent as a call of its own.
 */
export const MAX_ROWS = 64;

type Asked = {
  readonly name: string;
  readonly args: readonly string[];
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: CallboardError) => void;
};
/**
 * The calling node, and the numbers of the last call that it sent and the last one that Redis confirmed. If Redis lost
 * a write, its number is lower than the last one that it confirmed.
 */
type Caller = { readonly identity: Identity; sent: number; confirmed: number };

export type BatchOptions = {
  readonly client: Client;
  readonly programs: Programs;
  readonly time?: (() => number) | undefined;
  readonly metaOf: (partition: number) => string;
  readonly counted: () => void;
  /** Called with each error of Redis. */
  readonly failed?: ((error: unknown) => void) | undefined;
};

export type Batches = {
  add(partition: number, name: string, args: readonly (string | number | null)[]): Promise<Reply>;
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
export function createBatches(options: BatchOptions): Batches {
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
  const argv = [metaOf(partition), ...frame, ...acts];
  try {
    return (await client.evalsha(program.sha, 1, ...argv)) as readonly Reply[];
  } catch (error) {
    // Redis does not persist its cache of scripts. If it does not have the program, the program is sent.
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await client.eval(program.source, 1, ...argv)) as readonly Reply[];
  }
}

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

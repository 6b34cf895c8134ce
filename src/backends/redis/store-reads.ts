/** Sends the reads of a tick to Redis as pipelines, and hands each request its answers. */
import { unavailable, type Client } from './client.ts';
import type { ReadCommand, Reply } from './replies.ts';

/**
 * The most reads in a short list. A longer list is sent separately, so that short lists of the same tick need not wait
 * for it.
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
 * Returns a function that collects lists of reads. The lists of one tick and slot are sent as one pipeline, and each
 * list gets its own answers. All keys of a list must be in one slot. Throws `store_unavailable`.
 */
export function createReads(options: ReadOptions): Reads {
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
 * Returns the hash tag of the first key, which determines its slot. Returns null for a key without a tag; such a key is
 * not one of callboard's.
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

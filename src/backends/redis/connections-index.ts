/** Reads ranges of the indexes of connections, contexts and windows, and sends the reads of one tick together. */
import type { KeyKind } from './keys.ts';
import { listOf, numbersOf, type ReadCommand, type Reply } from './replies.ts';
import type { Store } from './store.ts';

/**
 * `SWEEP_ROWS`: the most rows that one act forgets. `SWEEPS`: the most such acts before a read is answered. If still
 * more rows are due to be forgotten, listings leave them out, but counts include them.
 */
const SWEEP_ROWS = 64;
const SWEEPS = 100;
/**
 * The most members that one act returns, and the most index ranges that it reads. Redis answers no other request while
 * an act runs.
 */
const MAX_MEMBERS = 4_000;
const MAX_PARTS = 200;

/**
 * A requested range of an index whose members are ordered by the bytes of their names. `min`, `max`: bounds of
 * ZRANGEBYLEX. `limit`: the most members to return. `counted`: whether to count all members of the range.
 */
type Part = {
  readonly kind: KeyKind;
  readonly min: string;
  readonly max: string;
  readonly limit: number;
  readonly counted?: boolean;
};

/** The time of a partition, and the nodes whose lease has expired, each with the end of its lease (ms). */
export type LeaseView = { readonly now: number; readonly over: ReadonlyMap<string, number> };
/** An index range as it was read. `count`: the number of its members; -1 if no count was requested. */
type Looked = LeaseView & { readonly members: readonly string[]; readonly count: number };

export type Looker = ReturnType<typeof createLooker>;

/**
 * Collects the reads of one tick. The reads of one partition take one round trip for index ranges, and one for keys.
 */
export function createLooker(store: Store) {
  return {
    /** Forgets the rows that are due, and then reads a range of an index. */
    look: gathered((partition, parts: readonly Part[]) => look(store, partition, parts)),
    read: async (command: ReadCommand): Promise<Reply> => (await store.read([command]))[0] ?? null,
  };
}

type Where = {
  /** The user, or the user and the client, whose members are read; empty for the members of all users. */
  readonly prefix: readonly string[];
  /** The position after which the range begins; null for the start of the index. */
  readonly after: readonly string[] | null;
};

/** Returns the range of an index whose names begin with `prefix`, after a position. */
export function partOf(kind: KeyKind, { prefix, after }: Where, limit: number): Part {
  const own = prefix.join('\0');
  const start = prefix.length === 0 ? '-' : `[${own}\0`;
  const max = prefix.length === 0 ? '+' : `(${own}\u0001`;
  return { kind, min: after === null ? start : `(${after.join('\0')}`, max, limit };
}

type Waiting<A> = { readonly resolve: (answer: A) => void; readonly reject: (error: unknown) => void };

function gathered<Q, A>(
  run: (partition: number, asked: readonly Q[]) => Promise<readonly A[]>,
): (partition: number, one: Q) => Promise<A> {
  const queues = new Map<number, { readonly asked: Q[]; readonly waiting: Waiting<A>[] }>();
  const flush = (partition: number): void => {
    const { asked, waiting } = queues.get(partition) ?? { asked: [], waiting: [] };
    queues.delete(partition);
    run(partition, asked).then(
      (answers) => answers.forEach((answer, i) => waiting[i]?.resolve(answer)),
      (error: unknown) => waiting.forEach(({ reject }) => reject(error)),
    );
  };
  return (partition, one) => {
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    const queue = queues.get(partition) ?? { asked: [], waiting: [] };
    if (queue.asked.length === 0) setImmediate(() => flush(partition));
    queues.set(partition, queue);
    queue.asked.push(one);
    queue.waiting.push({ resolve, reject });
    return promise;
  };
}

export async function look(store: Store, partition: number, parts: readonly Part[]): Promise<readonly Looked[]> {
  const answers = await Promise.all([...piecesOf(parts)].map((piece) => sweep(store, partition, piece)));
  return answers.flat();
}

async function sweep(store: Store, partition: number, parts: readonly Part[]): Promise<readonly Looked[]> {
  const args = parts.flatMap(({ kind, min, max, limit, counted }) => [kind, min, max, limit, counted ? '1' : '']);
  for (let turn = 1; ; turn++) {
    const reply = await store.act(partition, 'connections-sweep', [SWEEP_ROWS, ...args]);
    const [now, more, over, ...found] = listOf(reply);
    if (more === '1' && turn < SWEEPS) continue;
    const leases = leaseViewOf(now, over);
    return found.map((one) => {
      const [members, count] = listOf(one);
      return { ...leases, members: listOf(members).map(String), count: Number(count) };
    });
  }
}

function* piecesOf(parts: readonly Part[]): Generator<readonly Part[]> {
  let piece: Part[] = [];
  let members = 0;
  for (const part of parts) {
    if (piece.length === MAX_PARTS || (piece.length > 0 && members + part.limit > MAX_MEMBERS)) {
      yield piece;
      piece = [];
      members = 0;
    }
    piece.push(part);
    members += part.limit;
  }
  yield piece;
}

/**
 * Decodes the time and the leases that an act returned. `over`: names and values alternate: a node whose lease has
 * expired, and the end of that lease.
 */
export function leaseViewOf(now: Reply | undefined, over: Reply | undefined): LeaseView {
  return { now: Number(now), over: numbersOf(over) };
}

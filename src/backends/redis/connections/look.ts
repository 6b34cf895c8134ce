import type { KeyKind } from '../keys.ts';
import { fieldsOf, listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { ReadCommand, Reply } from '../types.ts';

/** Rows that one act forgets, and how often an answer waits for the next of them: then it counts what is past its time, but shows none. */
const SWEEP_ROWS = 64;
const SWEEPS = 100;
/** Members that one act returns, and parts of indexes that it reads, at most: Redis blocks while an act runs. */
const MAX_MEMBERS = 4_000;
const MAX_PARTS = 200;

/** A part of an index by name, in byte order; bounds as ZRANGEBYLEX takes them. */
export type Part = {
  readonly kind: KeyKind;
  readonly min: string;
  readonly max: string;
  readonly limit: number;
  readonly counted?: boolean;
};

/** How time stands in a partition: its clock, and the nodes whose lease is over, with when that was. */
export type Standing = { readonly now: number; readonly over: ReadonlyMap<string, number> };
/** `count`: of the whole part, where it was asked for. */
export type Looked = Standing & { readonly members: readonly string[]; readonly count: number };

/** What is looked at in one partition in a tick is gathered: however much there is, it costs a round trip of each kind. */
export interface Looker {
  /** A part of an index, once what is due is forgotten. */
  look(partition: number, part: Part): Promise<Looked>;
  read(command: ReadCommand): Promise<Reply>;
}

export function createLooker(store: Store): Looker {
  return {
    look: gathered((partition, parts) => look(store, partition, parts)),
    read: async (command) => (await store.read([command]))[0] ?? null,
  };
}

export type Where = {
  /** None: everyone's; a user; a user and a client. */
  readonly prefix: readonly string[];
  /** Exclusive; null begins at the start. */
  readonly after: readonly string[] | null;
};

/** The part of an index that begins with these names, from behind a position on. */
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

async function look(store: Store, partition: number, parts: readonly Part[]): Promise<readonly Looked[]> {
  const answers = await Promise.all([...piecesOf(parts)].map((piece) => sweep(store, partition, piece)));
  return answers.flat();
}

async function sweep(store: Store, partition: number, parts: readonly Part[]): Promise<readonly Looked[]> {
  const args = parts.flatMap(({ kind, min, max, limit, counted }) => [kind, min, max, limit, counted ? '1' : '']);
  for (let turn = 1; ; turn++) {
    const reply = await store.act(partition, 'connections-sweep', [SWEEP_ROWS, ...args]);
    const [now, more, over, ...found] = listOf(reply);
    if (more === '1' && turn < SWEEPS) continue;
    const standing = standingOf(now, over);
    return found.map((one) => {
      const [members, count] = listOf(one);
      return { ...standing, members: listOf(members ?? null).map(String), count: Number(count) };
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

/** As acts answer it: the time, and node and end in turn. */
export function standingOf(now: Reply | undefined, over: Reply | undefined): Standing {
  const ends = [...fieldsOf(over ?? null)].map(([node, end]) => [node, Number(end)] as const);
  return { now: Number(now), over: new Map(ends) };
}

/** Lists the streams of users in Redis, and the users that have a stream. */
import type { HistoryStore, StreamSummary } from '../../../core/history/message.ts';
import { scanSorted, type PageRequest } from '../../../core/page.ts';
import { extentOf, gapsOf, headOf, leastSeq, streamHash, type HistoryParts } from './rows.ts';
import { listOf, type ReadCommand, type Reply } from '../types.ts';
type Listings = Pick<HistoryStore, 'streams' | 'ofUsers' | 'users'>;
type Summaries = Awaited<ReturnType<HistoryStore['ofUsers']>>[number];

/**
 * Creates the listings. An act first forgets the streams that are too old and reads an index; one list of reads then
 * gets the summaries of the streams.
 */
export function createStreamListings(parts: HistoryParts): Listings {
  return {
    async streams(userId, prefix, page) {
      const bounds = boundsOf(prefix, page.after?.[0] ?? null);
      const [found] = await listStreams(parts, [{ userId, ...bounds }], page.first + 1);
      return { ...scanSorted(found?.rows ?? [], page, ({ suffix }) => [suffix]), gaps: found?.gaps ?? [] };
    },
    ofUsers(userIds, first) {
      const all = boundsOf(null, null);
      return listStreams(
        parts,
        userIds.map((userId) => ({ userId, ...all })),
        first,
      );
    },
    users: (page) => listUsers(parts, page),
  };
}

type Asked = { readonly userId: string; readonly min: string; readonly max: string };

/** A prefix followed by this character sorts after every text that begins with the prefix. */
const LAST = '\u{10ffff}';

function boundsOf(prefix: string | null, after: string | null): Pick<Asked, 'min' | 'max'> {
  const max = prefix === null ? '+' : `(${prefix}${LAST}`;
  if (after === null) return { min: prefix === null ? '-' : `[${prefix}`, max };
  const beyond = prefix !== null && compareBytes(after, prefix) < 0;
  return { min: beyond ? `[${prefix}` : `(${after}`, max };
}

/** Lists streams for each item of `asked`, in the same order. */
async function listStreams(parts: HistoryParts, asked: readonly Asked[], first: number): Promise<readonly Summaries[]> {
  const { store } = parts;
  const partitions = Map.groupBy(asked.entries(), ([, { userId }]) => store.partitionOfUser(userId));
  const answers: Summaries[] = [];
  const listOne = async (partition: number, some: readonly (readonly [number, Asked])[]): Promise<void> => {
    const found = await listPartition(
      parts,
      partition,
      some.map(([, one]) => one),
      first,
    );
    some.forEach(([at], i) => (answers[at] = found[i] ?? { total: 0, rows: [], gaps: [] }));
  };
  await Promise.all([...partitions].map(([partition, some]) => listOne(partition, some)));
  return answers;
}

async function listPartition(
  parts: HistoryParts,
  partition: number,
  asked: readonly Asked[],
  first: number,
): Promise<readonly Summaries[]> {
  const { store, retentionMs } = parts;
  const triples = asked.flatMap(({ userId, min, max }) => [userId, store.hash(userId), min, max]);
  const [stamp, ...lists] = await untilSwept(() =>
    store.act(partition, 'history-streams', [retentionMs, first, ...triples]),
  );
  const now = Number(stamp);
  const named = asked.map(({ userId }, i) => {
    const [total, droppedAt, ...suffixes] = listOf(lists[i]);
    const gaps = gapsOf(parts, { source: 'streams', now }, droppedAt);
    return { total: Number(total), gaps, names: suffixes.map((suffix) => ({ userId, suffix: String(suffix) })) };
  });
  const names = named.flatMap((one) => one.names);
  const oldest = Math.max(0, now - retentionMs + 1);
  const replies = await store.read(
    names.flatMap((name): readonly ReadCommand[] => {
      const hash = streamHash(store, name);
      return [
        ['XRANGE', store.key(partition, 'stream', hash), oldest, '+', 'COUNT', 1],
        ['HGET', store.key(partition, 'streamheads', store.hash(name.userId)), hash],
      ];
    }),
  );
  const rows = new Map(names.map((name, i) => [name, summaryOf(parts, name, replies[2 * i], replies[2 * i + 1])]));
  return named.map(({ total, gaps, names: own }) => ({
    total,
    gaps,
    rows: own.flatMap((name) => rows.get(name) ?? []),
  }));
}

/**
 * Returns the summary of a stream; null if the stream was removed since the index was read. The `seq` of a stream has
 * no gaps, so the number of messages follows from the first and the last. The stream's first entry has its oldest row
 * that may be shown.
 */
function summaryOf(
  parts: HistoryParts,
  name: { readonly userId: string; readonly suffix: string },
  firstEntry: Reply | undefined,
  known: Reply | undefined,
): StreamSummary | null {
  const [entry] = listOf(firstEntry);
  if (entry === undefined) return null;
  const first = extentOf(entry);
  const last = headOf(known) ?? { seq: first.seq + first.rows - 1, at: first.at };
  const seq = Math.max(first.seq, leastSeq(parts, name, last.seq));
  return { ...name, messageCount: last.seq - seq + 1, firstAt: first.at, lastAt: last.at };
}

async function listUsers(parts: HistoryParts, page: PageRequest): ReturnType<typeof scanUsers> {
  const { store, retentionMs } = parts;
  const after = page.after?.[0] ?? null;
  const partitions = await Promise.all(
    Array.from({ length: store.partitions }, (_, partition) =>
      untilSwept(() => store.act(partition, 'history-users', [retentionMs, page.first + 1, after])),
    ),
  );
  return scanUsers(parts, partitions, page);
}

async function scanUsers(parts: HistoryParts, partitions: readonly (readonly Reply[])[], page: PageRequest) {
  const users: { userId: string; count: number }[] = [];
  for (const [, , ...flat] of partitions)
    for (let i = 0; i + 1 < flat.length; i += 2) users.push({ userId: String(flat[i]), count: Number(flat[i + 1]) });
  users.sort((a, b) => compareBytes(a.userId, b.userId));
  const gaps = partitions.flatMap(([now, droppedAt]) =>
    gapsOf(parts, { source: 'streams', now: Number(now) }, droppedAt),
  );
  return { ...scanSorted(users, page, ({ userId }) => [userId]), gaps: gaps.slice(0, 1) };
}

/** Repeats the act until no more streams are due to be forgotten. */
async function untilSwept(ask: () => Promise<Reply>): Promise<readonly Reply[]> {
  for (;;) {
    const reply = await ask();
    if (reply !== null) return listOf(reply);
  }
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

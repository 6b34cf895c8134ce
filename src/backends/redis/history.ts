/**
 * Core's HistoryStore over Redis: appends messages, lists streams, and samples the newest messages.
 *
 * history-pages.ts reads pages of messages.
 */
import { randomUUID } from 'node:crypto';
import {
  LINK_STREAM,
  type Message,
  type NewMessage,
  type HistoryStore,
  type StreamSummary,
  type RawSample,
  type SampleBounds,
} from '../../core/history/message.ts';
import { LINK_MESSAGES } from '../../core/limits.ts';
import { commandDeps, type RedisDeps } from './deps.ts';
import type { MarkOfRow } from './commands/transaction-writes.ts';
import { createMessageReads, lookAt } from './history-pages.ts';
import { markHash } from './dedup.ts';
import {
  payloadBytesOf,
  refuseNul,
  type HistoryDeps,
  extentOf,
  gapsOf,
  headOf,
  lagOf,
  leastSeq,
  streamHash,
  decodeBlocks,
  placeOf,
  type StoredMessage,
  type StreamName,
} from './history-rows.ts';
import { partitionsOf } from './store-partitions.ts';
import { listOf, numbersOf, type Reply, type ReadCommand } from './replies.ts';
import { scanSorted, type PageRequest } from '../../core/page.ts';
import { CallboardError } from '../../core/errors.ts';
import { Sampling } from '../../core/history/raw-sample.ts';
import { trustJson, type JsonText } from '../../core/json.ts';

/** The most characters of a row besides its payload. */
const ROW_CHARS = 512;

/**
 * Creates core's HistoryStore over Redis. Messages that are too old are neither shown nor counted, and later acts of
 * their partition remove them. If the limit of messages per stream is lowered, a stream is shortened when its next
 * message is appended. If a user has too many streams, the one that was written least recently is removed, which is
 * reported as `evicted`.
 */
export function createRedisHistory(redis: RedisDeps): HistoryStore {
  const { store, clock, retentionMs, streamMessages, linkMessages = LINK_MESSAGES } = redis;
  const deps: HistoryDeps = { store, clock, retentionMs, streamMessages, linkMessages };
  const { transactions } = commandDeps(redis);
  /** Appends a message once. Returns the message, or null if another call has appended it. */
  const append = async (message: NewMessage, mark: MarkOfRow): Promise<Message | null> => {
    refuseNul(message);
    const chars = ROW_CHARS + (message.payload?.length ?? 0);
    const { answer, place, trimmed } = await transactions.run({
      key: { userId: message.userId, clientId: message.clientId ?? '', commandId: mark.hash },
      given: {},
      // The first attempt assumes that no mark exists.
      known: (failed) => (failed ? null : {}),
      first: (keyOf, partition) => [['GET', keyOf(partition, 'mark', mark.hash)]],
      run: (_rules, tx) => tx.appendOnce(message, mark),
      grows: true,
      chars,
      rowChars: chars,
    });
    // The answer waits until the rows beyond the limits are removed, so that a caller who reads at once does not see
    // them.
    await trimmed;
    if (answer.kind === 'duplicate') return null;
    return { ...message, ...placeOf(answer.place ?? place), payloadBytes: payloadBytesOf(message) };
  };
  return {
    retentionMs,
    async retain(message) {
      const mark = { hash: store.hash('retain', randomUUID()), token: '-', isCounted: false };
      const appended = await append(message, mark);
      if (!appended) throw new CallboardError('internal', 'Another call has appended this message.');
      return appended;
    },
    async ingest(message) {
      const { userId, clientId, id } = message;
      const hash = markHash(store, { userId, clientId, messageId: id });
      const appended = await append(message, { hash, token: randomUUID(), isCounted: true });
      return appended ? { kind: 'retained', message: appended } : { kind: 'duplicate', messageId: id };
    },
    ...createStreamListings(deps),
    ...createMessageReads(deps),
    sample: createSample(deps),
  };
}

type Listings = Pick<HistoryStore, 'streams' | 'ofUsers' | 'users'>;
type Summaries = Awaited<ReturnType<HistoryStore['ofUsers']>>[number];

/**
 * Creates the listings of streams. Reads the indexes after all streams that are due have been forgotten, and then the
 * summaries of the streams.
 */
function createStreamListings(deps: HistoryDeps): Listings {
  return {
    async streams(userId, prefix, page) {
      const bounds = boundsOf(prefix, page.after?.[0] ?? null);
      const [found] = await listStreams(deps, [{ userId, ...bounds }], page.first + 1);
      return { ...scanSorted(found?.rows ?? [], page, ({ suffix }) => [suffix]), gaps: found?.gaps ?? [] };
    },
    ofUsers(userIds, first) {
      const all = boundsOf(null, null);
      return listStreams(
        deps,
        userIds.map((userId) => ({ userId, ...all })),
        first,
      );
    },
    users: (page) => listUsers(deps, page),
  };
}

type StreamRange = { readonly userId: string; readonly min: string; readonly max: string };

/** This character, appended to a prefix, sorts after every text that begins with the prefix. */
const LAST = '\u{10ffff}';

function boundsOf(prefix: string | null, after: string | null): Pick<StreamRange, 'min' | 'max'> {
  const max = prefix === null ? '+' : `(${prefix}${LAST}`;
  if (after === null) return { min: prefix === null ? '-' : `[${prefix}`, max };
  const beyond = prefix !== null && compareBytes(after, prefix) < 0;
  return { min: beyond ? `[${prefix}` : `(${after}`, max };
}

/** Lists the streams of each user in `asked`, in the same order. */
async function listStreams(
  deps: HistoryDeps,
  asked: readonly StreamRange[],
  first: number,
): Promise<readonly Summaries[]> {
  const { store } = deps;
  const partitions = Map.groupBy(asked.entries(), ([, { userId }]) => store.partitionOfUser(userId));
  const answers: Summaries[] = [];
  const listOne = async (partition: number, some: readonly (readonly [number, StreamRange])[]): Promise<void> => {
    const found = await listPartition(
      deps,
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
  deps: HistoryDeps,
  partition: number,
  asked: readonly StreamRange[],
  first: number,
): Promise<readonly Summaries[]> {
  const { store, clock, retentionMs } = deps;
  const lists = await readSwept(
    deps,
    partition,
    asked.flatMap(({ userId, min, max }): readonly ReadCommand[] => {
      const streams = store.key(partition, 'streams', store.hash(userId));
      return [
        ['ZCARD', streams],
        ['ZSCORE', store.key(partition, 'evicted'), userId],
        ['ZRANGEBYLEX', streams, min, max, 'LIMIT', 0, first],
      ];
    }),
  );
  const now = clock.now();
  const named = asked.map(({ userId }, i) => {
    const [total, droppedAt, suffixes] = lists.slice(3 * i, 3 * i + 3);
    const gaps = gapsOf(deps, { source: 'streams', now }, droppedAt);
    return {
      total: Number(total),
      gaps,
      names: listOf(suffixes).map((suffix) => ({ userId, suffix: String(suffix) })),
    };
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
  const rows = new Map(names.map((name, i) => [name, summaryOf(deps, name, replies[2 * i], replies[2 * i + 1])]));
  return named.map(({ total, gaps, names: own }) => ({
    total,
    gaps,
    rows: own.flatMap((name) => rows.get(name) ?? []),
  }));
}

/**
 * Returns the summary of a stream; null if the stream was removed since the index was read. The number of messages
 * follows from the first and the last `seq`, because `seq` has no gaps. The first entry of the stream contains its
 * oldest row that may be shown.
 */
function summaryOf(
  deps: HistoryDeps,
  name: { readonly userId: string; readonly suffix: string },
  firstEntry: Reply | undefined,
  known: Reply | undefined,
): StreamSummary | null {
  const [entry] = listOf(firstEntry);
  if (entry === undefined) return null;
  const first = extentOf(entry);
  const last = headOf(known) ?? { seq: first.seq + first.rows - 1, at: first.at };
  const seq = Math.max(first.seq, leastSeq(deps, name, last.seq));
  return { ...name, messageCount: last.seq - seq + 1, firstAt: first.at, lastAt: last.at };
}

async function listUsers(deps: HistoryDeps, page: PageRequest): ReturnType<typeof scanUsers> {
  const { store, retentionMs } = deps;
  const after = page.after?.[0] ?? null;
  const partitions = await Promise.all(
    Array.from({ length: store.partitions }, (_, partition) =>
      untilSwept(() => store.act(partition, 'history-users', [retentionMs, page.first + 1, after])),
    ),
  );
  return scanUsers(deps, partitions, page);
}

async function scanUsers(deps: HistoryDeps, partitions: readonly (readonly Reply[])[], page: PageRequest) {
  const users: { userId: string; count: number }[] = [];
  for (const [, , ...flat] of partitions)
    for (let i = 0; i + 1 < flat.length; i += 2) users.push({ userId: String(flat[i]), count: Number(flat[i + 1]) });
  users.sort((a, b) => compareBytes(a.userId, b.userId));
  const gaps = partitions.flatMap(([now, droppedAt]) =>
    gapsOf(deps, { source: 'streams', now: Number(now) }, droppedAt),
  );
  return { ...scanSorted(users, page, ({ userId }) => [userId]), gaps: gaps.slice(0, 1) };
}

/** Repeats the act until no more streams are due to be forgotten. Returns its last reply. */
async function untilSwept(ask: () => Promise<Reply>): Promise<readonly Reply[]> {
  for (;;) {
    const reply = await ask();
    if (reply !== null) return listOf(reply);
  }
}

/** The most streams that one act forgets. */
const SWEPT = 100;

/** Reads indexes of streams in one round trip. Streams that are due are forgotten first. */
async function readSwept(
  { store, clock, retentionMs }: HistoryDeps,
  partition: number,
  commands: readonly ReadCommand[],
): Promise<readonly Reply[]> {
  const index = store.key(partition, 'streamgone');
  for (let more: Reply = 1; ;) {
    const [due, ...replies] = await store.read([
      ['ZRANGEBYSCORE', index, '-inf', clock.now(), 'LIMIT', 0, 1],
      ...commands,
    ]);
    if (more !== 1 || listOf(due).length === 0) return replies;
    more = await store.act(partition, 'history-sweep', [retentionMs, SWEPT]);
  }
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The most blocks that are read at once. */
const BATCH = 32;

/**
 * Creates the read of the newest messages, of one stream or of all. Messages of different streams with the same
 * millisecond are in no particular order.
 */
function createSample(deps: HistoryDeps): HistoryStore['sample'] {
  return async (stream, bounds) => (stream ? sampleStream(deps, stream, bounds) : sampleAll(deps, bounds));
}

async function sampleStream(deps: HistoryDeps, name: StreamName, bounds: SampleBounds): Promise<RawSample | null> {
  const { exists, now, droppedAt, least } = await lookAt(deps, name);
  if (!exists) return null;
  const count = Math.min(BATCH, bounds.messages + 1);
  const rows = backwards(deps, name, { oldest: Math.max(0, now - deps.retentionMs + 1), count, least });
  return { ...(await collect(rows, bounds)), gaps: gapsOf(deps, { source: 'messages', now }, droppedAt) };
}

/** `count`: the number of blocks in the first read; later reads get more. */
type Backwards = { readonly oldest: number; readonly count: number; readonly least: number };

async function* backwards({ store }: HistoryDeps, name: StreamName, asked: Backwards): AsyncGenerator<StoredMessage> {
  const partition = store.partitionOfUser(name.userId);
  const stream = store.key(partition, 'stream', streamHash(store, name));
  let { count } = asked;
  for (let from = '+'; ; count = Math.min(BATCH, 2 * count)) {
    const read: ReadCommand = ['XREVRANGE', stream, from, asked.oldest, 'COUNT', count];
    const blocks = decodeBlocks(name, (await store.read([read]))[0]);
    for (const { rows } of blocks) yield* rows.filter(({ message }) => message.seq >= asked.least).toReversed();
    const last = blocks.at(-1);
    if (!last || blocks.length < count) return;
    from = `(${last.entryId}`;
  }
}

async function sampleAll(deps: HistoryDeps, bounds: SampleBounds): Promise<RawSample> {
  const { store, clock } = deps;
  const now = clock.now();
  const evicted = await store.readAll((partition) => [
    ['ZREVRANGE', store.key(partition, 'evicted'), 0, 0, 'WITHSCORES'],
  ]);
  const gaps = evicted.flatMap(([newest]) => gapsOf(deps, { source: 'messages', now }, listOf(newest)[1]));
  const partitions = partitionsOf(store).map((partition) => rowsOf(deps, partition, now));
  return { ...(await collect(newestOf(partitions), bounds)), gaps: gaps.slice(0, 1) };
}

type Rows = AsyncGenerator<StoredMessage>;
type Begun = { readonly rows: Rows; row: StoredMessage };

/** Starts to read several lists of rows at the same time. Leaves out empty lists. */
async function begin(lists: readonly Rows[]): Promise<readonly Begun[]> {
  const begun = await Promise.all(lists.map(async (rows) => ({ rows, first: await rows.next() })));
  return begun.flatMap(({ rows, first }) => (first.done ? [] : [{ rows, row: first.value }]));
}

/** Merges lists of rows, each newest first. */
async function* newestOf(lists: readonly Rows[]): Rows {
  const open = [...(await begin(lists))];
  for (let newest = newestIn(open); newest; newest = newestIn(open)) yield await takeFrom(open, newest);
}

function newestIn(open: readonly Begun[]): Begun | undefined {
  return open.reduce<Begun | undefined>(
    (best, one) => (best && best.row.message.at >= one.row.message.at ? best : one),
    undefined,
  );
}

/** Returns the current row of a list, and advances the list or removes it at its end. */
async function takeFrom(open: Begun[], list: Begun): Promise<StoredMessage> {
  const { row } = list;
  const next = await list.rows.next();
  if (next.done) open.splice(open.indexOf(list), 1);
  else list.row = next.value;
  return row;
}

/**
 * Reads the rows of all streams of a partition except link histories, newest first. A stream is opened, with a few
 * others, only when the iteration reaches the time of its last write according to the index, which may be outdated.
 */
async function* rowsOf(deps: HistoryDeps, partition: number, now: number): Rows {
  const { store, retentionMs } = deps;
  const open: Begun[] = [];
  const known = new Set<string>();
  for (let from = 0, unread = Infinity; ;) {
    const newest = newestIn(open);
    if (newest && newest.row.message.at > unread) yield await takeFrom(open, newest);
    else if (unread === -Infinity) return;
    else {
      const index = store.key(partition, 'streamgone');
      const [page] = await store.read([['ZREVRANGE', index, from, from + BATCH - 1, 'WITHSCORES']]);
      const found = [...numbersOf(page)];
      from += BATCH;
      unread = found.length < BATCH ? -Infinity : (found.at(-1)?.[1] ?? 0) - retentionMs + lagOf(retentionMs);
      const names = found.map(([member]) => member).filter((member) => !known.has(member));
      for (const member of names) known.add(member);
      open.push(...(await begin(names.flatMap((member) => streamRows(deps, member, now)))));
    }
  }
}

/** Returns the rows of the stream with this name in the index of streams; none for a link history. */
function streamRows(deps: HistoryDeps, member: string, now: number): readonly Rows[] {
  const [userId = '', suffix = ''] = member.split('\0');
  return suffix === LINK_STREAM ? [] : [shownRows(deps, { userId, suffix }, now)];
}

/** Reads the rows of a stream that are shown, newest first. */
async function* shownRows(deps: HistoryDeps, name: StreamName, now: number): Rows {
  const { exists, least } = await lookAt(deps, name);
  if (exists) yield* backwards(deps, name, { oldest: Math.max(0, now - deps.retentionMs + 1), count: 1, least });
}

async function collect(rows: AsyncIterable<StoredMessage>, bounds: SampleBounds): Promise<Omit<RawSample, 'gaps'>> {
  const sampling = new Sampling(bounds);
  for await (const row of rows) if (!sampling.offer(row.message, () => storedOf(row))) break;
  return sampling.sample;
}

/** Returns the stored row as JSON, with the name of this adapter and the id of the entry. */
function storedOf({ message, entryId }: StoredMessage): JsonText {
  const { payload, ...members } = message;
  const shown = JSON.stringify({ adapter: 'redis', entryId, ...members });
  return trustJson(`${shown.slice(0, -1)},"payload":${payload ?? 'null'}}`);
}

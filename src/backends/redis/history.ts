/**
 * Core's HistoryStore over Redis: appends messages, lists streams, and reads samples of the newest messages.
 * history-pages.ts reads pages of messages.
 */
import { randomUUID } from 'node:crypto';
import type {
  Message,
  NewMessage,
  HistoryStore,
  StreamSummary,
  RawSample,
  SampleBounds,
} from '../../core/history/message.ts';
import { LINK_MESSAGES } from '../../core/limits.ts';
import { commandParts } from './commands/parts.ts';
import type { MarkOfRow } from './commands/act-words.ts';
import { createMessageReads, lookAt, blockAt } from './history-pages.ts';
import { markHash } from './dedup.ts';
import {
  payloadBytesOf,
  refuseNul,
  type HistoryParts,
  extentOf,
  gapsOf,
  headOf,
  leastSeq,
  streamHash,
  decodeBlocks,
  placeOf,
  type StoredMessage,
  type StreamName,
} from './history-rows.ts';
import type { RedisParts } from './parts.ts';
import { listOf, type Reply, type ReadCommand } from './types.ts';
import { scanSorted, type PageRequest } from '../../core/page.ts';
import { CallboardError } from '../../core/errors.ts';
import { Sampling } from '../../core/history/history.ts';
import { trustJson, type JsonText } from '../../core/json.ts';

/** The most characters of a row besides its payload. */
const ROW_CHARS = 512;

/**
 * Creates Core's HistoryStore over Redis. Messages that are too old are neither shown nor counted, and later acts of
 * their partition remove them. If the configured number of messages per stream is lowered, a stream is shortened with
 * its next message. If a user has too many streams, the one with the oldest last write is removed, which is reported as
 * `evicted`.
 */
export function createRedisHistory(redis: RedisParts): HistoryStore {
  const { store, retentionMs, streamMessages, linkMessages = LINK_MESSAGES } = redis;
  const parts: HistoryParts = { store, retentionMs, streamMessages, linkMessages };
  const { transactions } = commandParts(redis);
  /** Appends a message once. Returns it; null if it was appended by another call. */
  const append = async (message: NewMessage, mark: MarkOfRow): Promise<Message | null> => {
    refuseNul(message);
    const chars = ROW_CHARS + (message.payload?.length ?? 0);
    const { answer, place, trimmed } = await transactions.run({
      key: { userId: message.userId, clientId: message.clientId ?? '', commandId: mark.hash },
      given: {},
      // The mark is expected to be absent.
      known: (failed) => (failed ? null : {}),
      first: (keyOf, partition) => [['GET', keyOf(partition, 'mark', mark.hash)]],
      run: (_rules, tx) => tx.appendOnce(message, mark),
      ...{ grows: true, chars, rowChars: chars },
    });
    // What the message exceeds is removed before the answer, so that a caller who reads at once does not see it.
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
    ...createStreamListings(parts),
    ...createMessageReads(parts),
    sample: createSample(parts),
  };
}

type Listings = Pick<HistoryStore, 'streams' | 'ofUsers' | 'users'>;
type Summaries = Awaited<ReturnType<HistoryStore['ofUsers']>>[number];

/**
 * Creates the listings. An act first forgets the streams that are too old and reads an index; one list of reads then
 * gets the summaries of the streams.
 */
function createStreamListings(parts: HistoryParts): Listings {
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

/** The most blocks that are read at once. */
const BATCH = 32;

/**
 * Creates the read of the newest messages of one stream, or of all. Messages of different streams with the same
 * millisecond are in no particular order.
 */
function createSample(parts: HistoryParts): HistoryStore['sample'] {
  return async (stream, bounds) => (stream ? sampleStream(parts, stream, bounds) : sampleAll(parts, bounds));
}

async function sampleStream(parts: HistoryParts, name: StreamName, bounds: SampleBounds): Promise<RawSample | null> {
  const { exists, now, droppedAt, least } = await lookAt(parts, name);
  if (!exists) return null;
  const count = Math.min(BATCH, bounds.messages + 1);
  const rows = backwards(parts, name, { oldest: Math.max(0, now - parts.retentionMs + 1), count, least });
  return { ...(await collect(rows, bounds)), gaps: gapsOf(parts, { source: 'messages', now }, droppedAt) };
}

type Backwards = { readonly oldest: number; readonly count: number; readonly least: number };

async function* backwards({ store }: HistoryParts, name: StreamName, asked: Backwards): AsyncGenerator<StoredMessage> {
  const partition = store.partitionOfUser(name.userId);
  const stream = store.key(partition, 'stream', streamHash(store, name));
  for (let from = '+'; ;) {
    const read: ReadCommand = ['XREVRANGE', stream, from, asked.oldest, 'COUNT', asked.count];
    const blocks = decodeBlocks(name, (await store.read([read]))[0]);
    for (const { rows } of blocks) yield* rows.filter(({ message }) => message.seq >= asked.least).toReversed();
    const last = blocks.at(-1);
    if (!last || blocks.length < asked.count) return;
    from = `(${last.entryId}`;
  }
}

type Place = StreamName & { readonly partition: number; readonly hash: string; readonly entryId: string };

async function sampleAll(parts: HistoryParts, bounds: SampleBounds): Promise<RawSample> {
  const { store } = parts;
  const heads = await Promise.all(
    Array.from({ length: store.partitions }, (_, partition) => newestOf(parts, partition, bounds)),
  );
  const places = heads.flatMap((head) => head.places);
  places.sort((a, b) => compare(placeOf(b.entryId), placeOf(a.entryId)));
  const sample = await collect(readPlaces(parts, places), bounds);
  return {
    rows: sample.rows,
    cut: sample.cut || heads.some(({ cut }) => cut),
    gaps: heads.flatMap(({ gaps }) => gaps).slice(0, 1),
  };
}

function compare(a: { at: number; seq: number }, b: { at: number; seq: number }): number {
  return a.at - b.at || a.seq - b.seq;
}

type Head = { readonly places: readonly Place[]; readonly cut: boolean; readonly gaps: RawSample['gaps'] };

async function newestOf(parts: HistoryParts, partition: number, bounds: SampleBounds): Promise<Head> {
  const { store, retentionMs, streamMessages } = parts;
  const args = [retentionMs, bounds.messages, bounds.of === 'payloads' ? 1 : 0, streamMessages];
  const [stamp, droppedAt, cut, ...flat] = listOf(await store.act(partition, 'history-newest', args));
  const places: Place[] = [];
  for (let i = 0; i + 3 < flat.length; i += 4) {
    const [userId = '', suffix = '', hash = '', entryId = ''] = flat.slice(i, i + 4).map(String);
    places.push({ partition, userId, suffix, hash, entryId });
  }
  return { places, cut: cut === 1, gaps: gapsOf(parts, { source: 'messages', now: Number(stamp) }, droppedAt) };
}

/** Reads the messages at these places, a few at a time, because the limit on bytes may end the sample early. */
async function* readPlaces({ store }: HistoryParts, places: readonly Place[]): AsyncGenerator<StoredMessage> {
  for (let from = 0; from < places.length; from += BATCH) {
    const some = places.slice(from, from + BATCH);
    const read = ({ partition, hash, entryId }: Place): ReadCommand => {
      const { at, seq } = placeOf(entryId);
      return blockAt(store.key(partition, 'stream', hash), at, seq);
    };
    const partitions = Map.groupBy(some, ({ partition }) => partition);
    const found = new Map<Place, readonly StoredMessage[]>();
    const readSome = async (own: readonly Place[]): Promise<void> => {
      const replies = await store.read(own.map(read));
      own.forEach((place, i) => {
        const rows = decodeBlocks(place, replies[i]).flatMap((block) => block.rows);
        found.set(
          place,
          rows.filter(({ entryId }) => entryId === place.entryId),
        );
      });
    };
    await Promise.all([...partitions.values()].map(readSome));
    for (const place of some) yield* found.get(place) ?? [];
  }
}

async function collect(rows: AsyncIterable<StoredMessage>, bounds: SampleBounds): Promise<Omit<RawSample, 'gaps'>> {
  const sampling = new Sampling(bounds);
  for await (const row of rows) if (!sampling.offer(row.message, () => storedOf(row))) break;
  return sampling.sample;
}

/** Returns the stored row as JSON, with the name of this storage and the row's id in it. */
function storedOf({ message, entryId }: StoredMessage): JsonText {
  const { payload, ...members } = message;
  const shown = JSON.stringify({ adapter: 'redis', entryId, ...members });
  return trustJson(`${shown.slice(0, -1)},"payload":${payload ?? 'null'}}`);
}

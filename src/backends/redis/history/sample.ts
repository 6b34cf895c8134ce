/** Reads samples of the newest messages, of one stream or of all. */
import { Sampling } from '../../../core/history/history.ts';
import type { HistoryStore, RawSample, SampleBounds } from '../../../core/history/message.ts';
import { trustJson, type JsonText } from '../../../core/json.ts';
import { lookAt } from './messages.ts';
import { blockAt } from './places.ts';
import {
  decodeBlocks,
  gapsOf,
  placeOf,
  streamHash,
  type HistoryParts,
  type StoredMessage,
  type StreamName,
} from './rows.ts';
import { listOf, type ReadCommand } from '../types.ts';
/** The most blocks that are read at once. */
const BATCH = 32;

/**
 * Creates the read of the newest messages of one stream, or of all. Messages of different streams with the same
 * millisecond are in no particular order.
 */
export function createSample(parts: HistoryParts): HistoryStore['sample'] {
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

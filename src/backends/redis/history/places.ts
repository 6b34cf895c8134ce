/**
 * Reads pages of the messages of one command, over all streams of its user, through the index of commands' messages.
 */
import type { Message, MessagePage } from '../../../core/history/message.ts';
import { PAGE_READ_BYTES } from '../../../core/limits.ts';
import {
  checkStopped,
  SCAN_BUDGET,
  sortable,
  type ObservedSource,
  type Position,
  type Scan,
} from '../../../core/page.ts';
import { decodeBlocks, gapsOf, headOf, leastSeq, streamHash, type HistoryParts } from './rows.ts';
import { listOf, type ReadCommand, type Reply } from '../types.ts';
/** The most messages that are read at once. Redis sends the whole block of each. */
const BATCH = 32;

type CommandName = { readonly userId: string; readonly commandId: string };
/** Where a message of a command is stored. `text`: the place as a member of the index. */
type Place = {
  readonly text: string;
  readonly suffix: string;
  readonly at: number;
  readonly seq: number;
  readonly position: Position;
};
type Index = { readonly places: readonly Place[]; readonly gaps: readonly ObservedSource[] };

/** Reads one page. Skips messages that the index still names although their streams no longer have them. */
export async function scanCommand(parts: HistoryParts, name: CommandName, page: MessagePage): Promise<Scan<Message>> {
  const rows: { readonly row: Message; readonly position: Position }[] = [];
  let after = page.after;
  let [scanned, bytes] = [0, 0];
  for (;;) {
    checkStopped(page);
    const count = Math.min(BATCH, page.first - rows.length + 1);
    const { places, gaps } = await readIndex(parts, name, { first: count, after, order: page.order });
    const messages = await readPlaces(parts, name, places);
    for (const [i, { position }] of places.entries()) {
      const full = rows.length === page.first || scanned === SCAN_BUDGET || bytes >= PAGE_READ_BYTES;
      if (full) return { rows, next: after, gaps };
      after = position;
      scanned++;
      const row = messages[i];
      if (!row) continue;
      if (row.payload !== null) bytes += row.payloadBytes;
      rows.push({ row, position });
    }
    if (places.length < count) return { rows, next: null, gaps };
  }
}

async function readIndex(parts: HistoryParts, { userId, commandId }: CommandName, page: MessagePage): Promise<Index> {
  const { store, retentionMs } = parts;
  const from = page.after && placeText(page.after);
  const backwards = page.order === 'newest_first';
  const args = [retentionMs, userId, store.hash(userId), commandId, page.first, from, backwards ? 1 : null];
  const reply = listOf(await store.act(store.partitionOfUser(userId), 'history-command', args));
  const [stamp, droppedAt, full, ...texts] = reply;
  const now = Number(stamp);
  const gaps = gapsOf(parts, { source: 'messages', now }, droppedAt);
  // The index of this command is full, so it may have lost its oldest messages. They are reported like messages that
  // were dropped to make room.
  if (full === 1 && gaps.length === 0) gaps.push(...gapsOf(parts, { source: 'messages', now }, String(now)));
  return { places: picked(texts, { from, backwards, first: page.first }), gaps };
}

/** Returns the next places, in byte order of their texts. */
function picked(
  texts: readonly Reply[],
  { from, backwards, first }: { readonly from: string | null; readonly backwards: boolean; readonly first: number },
): readonly Place[] {
  const turn = backwards ? -1 : 1;
  const compare = (a: Buffer, b: Buffer): number => turn * Buffer.compare(a, b);
  const after = from === null ? null : Buffer.from(from);
  return texts
    .map((text) => Buffer.from(String(text)))
    .filter((bytes) => after === null || compare(bytes, after) > 0)
    .sort(compare)
    .slice(0, first)
    .map((bytes) => placeIn(bytes.toString()));
}

function placeText([at = '', suffix = '', seq = '']: Position): string {
  const padded = (text: string): string => String(Number.parseInt(text, 36) || 0).padStart(16, '0');
  return `${padded(at)}\0${suffix}\0${padded(seq)}`;
}

function placeIn(text: string): Place {
  const [time = '', suffix = '', place = ''] = text.split('\0');
  const [at, seq] = [Number(time), Number(place)];
  return { text, suffix, at, seq, position: [sortable(at), suffix, sortable(seq)] };
}

/** Reads the message at each place; null if its stream no longer shows it. */
async function readPlaces(
  parts: HistoryParts,
  { userId, commandId }: CommandName,
  places: readonly Place[],
): Promise<readonly (Message | null)[]> {
  const { store } = parts;
  const partition = store.partitionOfUser(userId);
  const hashes = [...new Set(places.map(({ suffix }) => streamHash(store, { userId, suffix })))];
  const heads: readonly ReadCommand[] =
    hashes.length === 0 ? [] : [['HMGET', store.key(partition, 'streamheads', store.hash(userId)), ...hashes]];
  const reads = places.map(({ suffix, at, seq }) =>
    blockAt(store.key(partition, 'stream', streamHash(store, { userId, suffix })), at, seq),
  );
  const [known, ...replies] = await store.read([...heads, ...reads]);
  const last = new Map(listOf(known).map((head, i) => [hashes[i] ?? '', headOf(head)?.seq ?? 0]));
  return places.map(({ suffix, seq }, i) => {
    const least = leastSeq(parts, { suffix }, last.get(streamHash(store, { userId, suffix })) ?? 0);
    if (seq < least) return null;
    const rows = decodeBlocks({ userId, suffix }, replies[i]).flatMap((block) => block.rows);
    const found = rows.find(({ message }) => message.seq === seq)?.message;
    return found?.commandId === commandId ? found : null;
  });
}

/**
 * Returns the command that reads the block with the row of this time and `seq`. If there is no such row, its answer is
 * another block of this time, or empty.
 */
export function blockAt(stream: string, at: number, seq: number): ReadCommand {
  return ['XREVRANGE', stream, `${at}-${seq}`, at, 'COUNT', 1];
}

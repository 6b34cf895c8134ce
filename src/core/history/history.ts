/** Lists streams and reads messages of the history that a requester may see. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { knownUser, readSight, readUser, seesAction, type Sight } from '../auth/sight.ts';
import { completenessOf, gapOf, observed, type ObservedSource } from '../completeness.ts';
import { listingOf, type Listing, type PageArgs, type GivenFilter } from '../cursors.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid, notFound } from '../errors.ts';
import { canonicalUser, id, within } from '../ids.ts';
import { ID_MAX_CHARS, RAW_SAMPLE, RAW_SAMPLE_BYTES, STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { sortable, type FirstRows, type Scan, type Summary } from '../page.ts';
import { holderOf } from '../shares/holder.ts';
import {
  MESSAGE_KINDS,
  MESSAGE_ORDERS,
  STREAM_FORM,
  isSuffix,
  splitStreamKey,
  type HistoryStore,
  type Message,
  type MessageFilter,
  type MessageKey,
  type MessageOrder,
  type RawSample,
  type SampleBounds,
  type StreamKey,
  type StreamSummary,
} from './message.ts';
import { readPayloads } from './payload-reading.ts';
import type { RawQuery, RawMessages } from './raw-sample.ts';

export type Histories = ReturnType<typeof createHistories>;

/**
 * Creates the API for reading history. It returns messages with their payloads; the layer that shows the messages
 * redacts the payloads.
 */
export function createHistories(deps: Deps) {
  const { backend, clock, cursors, readTurns } = deps;
  const store = backend.history;
  const streams = (requester: Requester, userId: string, prefix: string | null): Listing =>
    listingOf('streams', requester, { userId, prefix });
  return {
    async streams(requester: Requester, user: string, givenPrefix: string | null, page: PageArgs) {
      const userId = readUser(requester, user);
      const prefix = checkPrefix(givenPrefix);
      const listing = streams(requester, userId, prefix);
      const scan = await store.streams(userId, prefix, cursors.request(listing, page));
      return cursors.page(listing, scan, ['streams', clock.now()], (row) => row);
    },
    /**
     * Returns for each user the first page of `streams`, without a prefix. Reads all users together. For nested fields.
     */
    ofUsers(requester: Requester, userIds: readonly string[], first: number) {
      const pageOf = (userId: string, found: FirstRows<StreamSummary>): Summary<StreamSummary> => {
        const listing = streams(requester, userId, null);
        return cursors.firstPage(listing, found, ['streams', clock.now()], ({ suffix }) => [suffix]);
      };
      return thenDo(store.ofUsers(userIds, first), (found) =>
        found.map((summary, i) => pageOf(userIds[i] ?? '', summary)),
      );
    },
    /** Lists the messages of a stream. Null if there is no such stream, or if it belongs to another user. */
    async messages(requester: Requester, query: MessageQuery, page: MessagePageArgs) {
      const parsed = splitStreamKey(query.stream) ?? invalid('stream', STREAM_FORM);
      const userId = knownUser(requester, parsed.userId);
      if (userId === null) return null;
      const suffix = checkSuffix(parsed.suffix);
      const filter = checkFilter(query);
      const order = checkOrder(page.order);
      const listing = listingOf('messages', requester, { userId, suffix, ...filter, ...cursorOrder(order) });
      const request = { ...cursors.request(listing, page), order };
      const scan = await readTurns.run(holderOf(requester), () => store.messages(userId, suffix, filter, request));
      return scan && cursors.page(listing, scan, ['messages', clock.now()], (row) => row);
    },
    async ofCommand(requester: Requester, user: string, command: string, page: MessagePageArgs) {
      const sight = readSight(requester, user);
      const userId = sight.userId ?? notFound();
      const commandId = id('command_id', command);
      const order = checkOrder(page.order);
      const listing = listingOf('commandHistory', requester, { userId, commandId, ...cursorOrder(order) });
      const request = { ...cursors.request(listing, page), order };
      const found = await readTurns.run(holderOf(requester), () => store.ofCommand(userId, commandId, request));
      const scan = await ofSeenCommands(deps, sight, found);
      return cursors.page(listing, scan, ['messages', clock.now()], (row) => row);
    },
    /**
     * Returns one stream per key, in order; null if there is no such stream. For nested fields, after the streams were
     * authorized.
     */
    manyStreams: (keys: readonly StreamKey[]) => Promise.all(keys.map((key) => streamAt(store, key))),
    /**
     * Returns one message per key, in order; null for a message that is no longer retained. For nested fields, after
     * the messages were authorized.
     */
    manyMessages: async (requester: Requester, keys: readonly MessageKey[]) =>
      readTurns.run(holderOf(requester), () => Promise.all(keys.map((key) => messageAt(store, key)))),
    /**
     * Returns the payloads of messages, in order. Reads large payloads from the spill store. For nested fields, after
     * the messages were authorized and their payloads were requested.
     */
    payloads: (requester: Requester, messages: readonly Message[]) => readPayloads(deps, requester, messages),
    /**
     * Returns a bounded sample of stored messages, including members that only this backend has. For administrators
     * only, and only if the deployment allows it (`raw_history_disabled` otherwise). The requester is checked first, so
     * that no one else learns this setting. Null if there is no such stream.
     */
    async raw(requester: Requester, query: RawQuery): Promise<RawMessages | null> {
      requireAdmin(requester);
      if (!deps.rawMessages || deps.reveal !== 'argument')
        fail('raw_history_disabled', 'The raw sample of history is disabled on this relay.');
      const messages = within('limit', query.limit, { default: RAW_SAMPLE, min: 1, max: RAW_SAMPLE });
      const of = query.valuesOnly ? 'payloads' : 'stored';
      const stream = query.stream == null ? null : streamOf(query.stream);
      const sample = await store.sample(stream, { messages, bytes: RAW_SAMPLE_BYTES, of });
      if (sample === null) return null;
      const items = await itemsOf(deps, requester, sample, of);
      return { items, completeness: completenessOf(sourcesOf(sample, { items, messages, asOf: clock.now() })) };
    },
    /**
     * Removes the expired objects of a managed spill store, and returns their number. Returns 0 for an unmanaged store,
     * which it leaves alone.
     */
    cleanSpill: (): MaybePromise<number> => (deps.spill.managed ? deps.spill.clean() : 0),
  };
}

/** Removes the messages of commands whose action the requester may not see, or whose record no longer exists. */
async function ofSeenCommands({ backend }: Deps, sight: Sight, scan: Scan<Message>): Promise<Scan<Message>> {
  if (sight.actions === undefined) return scan;
  const keys = scan.rows.map(({ row: { userId, clientId, commandId } }) => ({
    userId,
    clientId: clientId ?? '',
    commandId: commandId ?? '',
  }));
  const commands = await backend.commands.get(keys);
  const rows = scan.rows.filter((_, i) => {
    const command = commands[i];
    return command != null && seesAction(sight, command.action);
  });
  return { ...scan, rows };
}

/**
 * Returns a stream; null if there is none. Reads the first stream whose suffix begins with the given one. If the stream
 * exists, it comes first in this order.
 */
async function streamAt(store: HistoryStore, { userId, suffix }: StreamKey): Promise<StreamSummary | null> {
  const { rows } = await store.streams(userId, suffix, { first: 1, after: null });
  const row = rows[0]?.row;
  return row?.suffix === suffix ? row : null;
}

/** Returns the message with this key; null if it is no longer retained. */
export async function messageAt(store: HistoryStore, { userId, suffix, seq, at }: MessageKey): Promise<Message | null> {
  const filter = { afterTime: at - 1, beforeTime: at + 1, kinds: null };
  const after = seq === 0 ? null : [sortable(seq - 1), sortable(at)];
  const row = (await store.messages(userId, suffix, filter, { first: 1, after }))?.rows[0]?.row;
  return row?.seq === seq && row.at === at ? row : null;
}

function checkSuffix(suffix: string): string {
  return isSuffix(suffix) ? suffix : invalid('stream', STREAM_FORM);
}

/** Checks a prefix of a stream suffix. An empty prefix counts as absent. */
function checkPrefix(prefix: string | null): string | null {
  if (prefix === null || prefix === '') return null;
  const longest = STREAM_SUFFIX_SEGMENTS * (ID_MAX_CHARS + 1);
  const good = prefix.length <= longest && /^[A-Za-z0-9_.:@~/-]+$/.test(prefix);
  return good ? prefix : invalid('prefix', 'expected the beginning of a stream suffix');
}

/** Checks a filter. Returns each kind once and in a fixed order, so that equivalent filters get the same cursors. */
function checkFilter({ afterTime, beforeTime, kinds }: MessageQuery): MessageFilter {
  if (kinds?.length === 0) invalid('kinds', 'expected at least one');
  const wrong = kinds?.find((kind) => !MESSAGE_KINDS.includes(kind));
  if (wrong !== undefined) invalid('kinds', `expected some of ${MESSAGE_KINDS.join(', ')}`);
  return {
    afterTime: checkTime('after_time', afterTime),
    beforeTime: checkTime('before_time', beforeTime),
    kinds: kinds ? MESSAGE_KINDS.filter((kind) => kinds.includes(kind)) : null,
  };
}

function checkOrder(order: MessageOrder | null | undefined): MessageOrder {
  const given = order ?? 'oldest_first';
  return MESSAGE_ORDERS.includes(given) ? given : invalid('order', `expected one of ${MESSAGE_ORDERS.join(', ')}`);
}

/**
 * Returns the part of a cursor's filter that binds the cursor to the order. The default order adds nothing, so cursors
 * of older versions stay valid, which knew only that order.
 */
function cursorOrder(order: MessageOrder): { readonly order?: MessageOrder } {
  return order === 'oldest_first' ? {} : { order };
}

function checkTime(parameter: string, time: number | null | undefined): number | null {
  if (time === null || time === undefined) return null;
  return Number.isFinite(time) ? time : invalid(parameter, 'expected a time');
}

/**
 * The requested page of messages. The default order is `oldest_first`. A cursor is valid only for the order in which it
 * was returned.
 */
type MessagePageArgs = PageArgs & { readonly order?: MessageOrder | null | undefined };

/** The filter of a list of messages. `stream`: the full key of the stream. */
type MessageQuery = GivenFilter<MessageFilter> & { readonly stream: string };

// Reads a bounded sample of stored rows, for operators only.

function streamOf(key: string): StreamKey {
  const { userId, suffix } = splitStreamKey(key) ?? invalid('stream', STREAM_FORM);
  return { suffix: checkSuffix(suffix), userId: canonicalUser(userId) };
}

async function itemsOf(
  deps: Deps,
  requester: Requester,
  { rows }: RawSample,
  of: SampleBounds['of'],
): Promise<RawMessages['items']> {
  if (of === 'stored') return rows.map(({ stored }) => stored);
  const messages = rows.map(({ message }) => message);
  return (await readPayloads(deps, requester, messages)).map(({ text }) => text);
}

type Seen = { readonly items: RawMessages['items']; readonly messages: number; readonly asOf: number };

function sourcesOf({ cut, gaps }: RawSample, { items, messages, asOf }: Seen): readonly ObservedSource[] {
  const own = { ...observed('messages', asOf, items.length, cut ? messages : null), limit: messages };
  const isUnread = items.includes(null);
  return [own, ...gaps, ...(isUnread ? [gapOf('messages', asOf, null, 'store_unavailable')] : [])];
}

/** Lists and reads the history that a requester may see. */
import { knownUser, readUser, requirePrincipal, subjectOf } from '../auth/principal.ts';
import type { Histories, MessageQuery, Summary, Requester } from '../core.ts';
import type { Listing } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { id } from '../ids.ts';
import { ID_MAX_CHARS, STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import { thenDo } from '../maybe-promise.ts';
import { sortable, type EvidenceSource, type ObservedSource } from '../page.ts';
import { holderOf } from '../shares/holders.ts';
import { isSuffix, MESSAGE_KINDS, splitStreamKey, STREAM_FORM, type Message } from './message.ts';
import { readPayloads } from './payloads.ts';
import { readRaw } from './raw.ts';
import {
  MESSAGE_ORDERS,
  type HistoryStore,
  type MessageFilter,
  type MessageKey,
  type MessageOrder,
  type StreamKey,
  type StreamSummary,
} from './store.ts';

/**
 * Creates the API of history. Messages are returned with their payloads; the layer that shows them redacts the
 * payloads.
 */
export function createHistories(deps: Deps): Histories {
  const { backend, clock, cursors, readTurns } = deps;
  const store = backend.history;
  return {
    async streams(requester, user, givenPrefix, page) {
      const userId = readUser(requester, user);
      const prefix = checkPrefix(givenPrefix);
      const listing = streamsListing(requester, userId, prefix);
      const scan = await store.streams(userId, prefix, cursors.request(listing, page));
      return cursors.page(listing, scan, sourceAt('streams', clock.now()), (row) => row);
    },
    ofUsers(requester, userIds, first) {
      type Found = Parameters<typeof cursors.firstPage<StreamSummary>>[1];
      const pageOf = (userId: string, found: Found): Summary<StreamSummary> => {
        const source = sourceAt('streams', clock.now());
        return cursors.firstPage(streamsListing(requester, userId, null), found, source, ({ suffix }) => [suffix]);
      };
      return thenDo(store.ofUsers(userIds, first), (found) =>
        found.map((summary, i) => pageOf(userIds[i] ?? '', summary)),
      );
    },
    async messages(requester, query, page) {
      const parsed = splitStreamKey(query.stream) ?? invalid('stream', STREAM_FORM);
      const userId = knownUser(requester, parsed.userId);
      if (userId === null) return null;
      const suffix = checkSuffix(parsed.suffix);
      const filter = checkFilter(query);
      const order = checkOrder(page.order);
      const listing = {
        name: 'messages',
        filter: { userId, suffix, ...filter, ...bound(order) },
        requester: requesterOf(requester),
      };
      const request = { ...cursors.request(listing, page), order };
      const scan = await readTurns.run(holderOf(requester), () => store.messages(userId, suffix, filter, request));
      return scan && cursors.page(listing, scan, sourceAt('messages', clock.now()), (row) => row);
    },
    async ofCommand(requester, user, command, page) {
      const userId = readUser(requester, user);
      const commandId = id('command_id', command);
      const order = checkOrder(page.order);
      const listing = {
        name: 'commandHistory',
        filter: { userId, commandId, ...bound(order) },
        requester: requesterOf(requester),
      };
      const request = { ...cursors.request(listing, page), order };
      const scan = await readTurns.run(holderOf(requester), () => store.ofCommand(userId, commandId, request));
      return cursors.page(listing, scan, sourceAt('messages', clock.now()), (row) => row);
    },
    manyStreams: (keys) => Promise.all(keys.map((key) => streamAt(store, key))),
    manyMessages: async (requester, keys) =>
      readTurns.run(holderOf(requester), () => Promise.all(keys.map((key) => messageAt(store, key)))),
    payloads: (requester, messages) => readPayloads(deps, requester, messages),
    raw: (requester, query) => readRaw(deps, requester, query),
    cleanSpill: () => (deps.spill.managed ? deps.spill.clean() : 0),
  };
}

/**
 * Returns a stream; null if there is none. Reads the first stream whose suffix begins with the given one: if the stream
 * exists, it is that one.
 */
async function streamAt(store: HistoryStore, { userId, suffix }: StreamKey): Promise<StreamSummary | null> {
  const { rows } = await store.streams(userId, suffix, { first: 1, after: null });
  const row = rows[0]?.row;
  return row?.suffix === suffix ? row : null;
}

/** Returns the retained message with this key; null if it is no longer retained. */
export async function messageAt(store: HistoryStore, { userId, suffix, seq, at }: MessageKey): Promise<Message | null> {
  const filter = { afterTime: at - 1, beforeTime: at + 1, kinds: null };
  const after = seq === 0 ? null : [sortable(seq - 1), sortable(at)];
  const row = (await store.messages(userId, suffix, filter, { first: 1, after }))?.rows[0]?.row;
  return row?.seq === seq && row.at === at ? row : null;
}

function checkSuffix(suffix: string): string {
  return isSuffix(suffix) ? suffix : invalid('stream', STREAM_FORM);
}

/** Checks a prefix of a stream suffix. An empty one counts as absent. */
function checkPrefix(prefix: string | null): string | null {
  if (prefix === null || prefix === '') return null;
  const longest = STREAM_SUFFIX_SEGMENTS * (ID_MAX_CHARS + 1);
  const good = prefix.length <= longest && /^[A-Za-z0-9_.:@~/-]+$/.test(prefix);
  return good ? prefix : invalid('prefix', 'expected the beginning of a stream suffix');
}

/** Returns each kind once and in a fixed order, so that equivalent filters have the same cursors. */
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
 * Returns the part of a cursor's filter that binds it to the order. The default order adds nothing, so that cursors of
 * older versions, which had only that order, stay valid.
 */
function bound(order: MessageOrder): { readonly order?: MessageOrder } {
  return order === 'oldest_first' ? {} : { order };
}

function checkTime(parameter: string, time: number | null | undefined): number | null {
  if (time === null || time === undefined) return null;
  return Number.isFinite(time) ? time : invalid(parameter, 'expected a time');
}

function streamsListing(requester: Requester, userId: string, prefix: string | null): Listing {
  return { name: 'streams', filter: { userId, prefix }, requester: requesterOf(requester) };
}

function requesterOf(requester: Requester): string {
  return subjectOf(requirePrincipal(requester));
}

function sourceAt(source: EvidenceSource, asOf: number): Pick<ObservedSource, 'source' | 'nodeId' | 'asOf'> {
  return { source, nodeId: null, asOf };
}

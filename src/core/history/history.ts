/**
 * Lists and reads the history that a requester may see, and the raw sample for administrators. Also has the class with
 * which the backends collect that sample, reads the payloads of messages, and stores large payloads in the spill store.
 */
import { knownUser, readSight, readUser, seesAction, type Sight } from '../auth/sight.ts';
import { requireAdmin, type Principal, type Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid, notFound, CallboardError } from '../errors.ts';
import { canonicalUser, id, within } from '../ids.ts';
import { utf8Length, type JsonText, longerThan } from '../json.ts';
import { ID_MAX_CHARS, RAW_SAMPLE, RAW_SAMPLE_BYTES, STREAM_SUFFIX_SEGMENTS, INLINE_PAYLOAD_BYTES } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, gapOf, observed, type Completeness, type ObservedSource } from '../completeness.ts';
import { listingOf, type Listing, type PageArgs, type GivenFilter } from '../cursors.ts';
import { SCAN_BUDGET, sortable, type FirstRows, type Scan, type Summary } from '../page.ts';
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
  NO_PAYLOAD,
  type ShownPayload,
  type SpillRead,
  type StoredPayload,
} from './message.ts';

export type Histories = ReturnType<typeof createHistories>;

/**
 * Creates the API for reading history. Messages are returned with their payloads; the layer that shows them redacts the
 * payloads.
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
     * Returns for each user the page that `streams` gives without a prefix. Reads all users together. For nested
     * fields.
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
     * Returns streams that the requester may read: one answer per key, in order; null where there is no such stream.
     */
    manyStreams: (keys: readonly StreamKey[]) => Promise.all(keys.map((key) => streamAt(store, key))),
    /**
     * Returns messages that the requester may read: one answer per key, in order; null for a message that is no longer
     * retained.
     */
    manyMessages: async (requester: Requester, keys: readonly MessageKey[]) =>
      readTurns.run(holderOf(requester), () => Promise.all(keys.map((key) => messageAt(store, key)))),
    /**
     * Returns the payloads of messages, in order. Large payloads are fetched from the spill store. For nested fields,
     * after the messages were authorized and their payloads were requested.
     */
    payloads: (requester: Requester, messages: readonly Message[]) => readPayloads(deps, requester, messages),
    /**
     * Returns one bounded sample of stored messages, including members that only this backend has. Administrators only,
     * and only if the deployment allows it (`raw_history_disabled`). The requester is checked first, so that others do
     * not learn the deployment's setting. Null: no such stream.
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
     * Removes the expired objects of a managed spill store and returns their number. An unmanaged store is not touched
     * (0).
     */
    cleanSpill: (): MaybePromise<number> => (deps.spill.managed ? deps.spill.clean() : 0),
  };
}

/** Leaves out the messages of commands whose action the sight does not have, or whose record is gone. */
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

/** Checks a filter. Returns each kind once and in a fixed order, so that equivalent filters have the same cursors. */
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
function cursorOrder(order: MessageOrder): { readonly order?: MessageOrder } {
  return order === 'oldest_first' ? {} : { order };
}

function checkTime(parameter: string, time: number | null | undefined): number | null {
  if (time === null || time === undefined) return null;
  return Number.isFinite(time) ? time : invalid(parameter, 'expected a time');
}

/** The default order is `oldest_first`. A cursor is valid only for the order in which it was given. */
export type MessagePageArgs = PageArgs & { readonly order?: MessageOrder | null | undefined };

/** `stream`: the full key of the stream. */
export type MessageQuery = GivenFilter<MessageFilter> & { readonly stream: string };

// Reads a bounded sample of stored rows, for operators only.

type RawQuery = {
  /** The full key of a stream; null: all streams. */
  readonly stream?: string | null | undefined;
  /** Returns only payloads, and skips messages without one. */
  readonly valuesOnly?: boolean | null | undefined;
  /** The most items, 1 to 100; null: 100. */
  readonly limit?: number | null | undefined;
};

/**
 * A raw sample, newest message first. An item is a message as the backend stores it, or only its payload. It is null
 * where a payload could not be read.
 */
export type RawMessages = { readonly items: readonly (JsonText | null)[]; readonly completeness: Completeness };

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

/**
 * Collects a sample: the first messages that fit into the bounds. At most SCAN_BUDGET messages are examined. The first
 * message is taken whatever its size.
 */
export class Sampling {
  readonly #bounds: SampleBounds;
  readonly #rows: RawSample['rows'][number][] = [];
  #bytes = 0;
  #scanned = 0;
  #cut = false;

  constructor(bounds: SampleBounds) {
    this.#bounds = bounds;
  }

  /**
   * Offers one message. `stored` returns the row as its store keeps it, and is called only if the row is needed.
   * Returns false if the sample is cut here and no more messages are to be offered.
   */
  offer(message: Message, stored: () => JsonText): boolean {
    const { of, messages, bytes } = this.#bounds;
    if (++this.#scanned > SCAN_BUDGET) return this.#end();
    if (of === 'payloads' && message.payload === null && message.spill === null) return true;
    if (this.#rows.length === messages) return this.#end();
    const text = stored();
    this.#bytes += of === 'payloads' ? message.payloadBytes : utf8Length(text);
    if (this.#bytes > bytes && this.#rows.length > 0) return this.#end();
    this.#rows.push({ message, stored: text });
    return true;
  }

  get sample(): Omit<RawSample, 'gaps'> {
    return { rows: this.#rows, cut: this.#cut };
  }

  #end(): false {
    this.#cut = true;
    return false;
  }
}

/**
 * How many payloads one answer reads at the same time, and how many bytes those in the spill store may have together. A
 * single object may have more bytes.
 */
const AT_ONCE = { objects: 16, bytes: 1024 * 1024 } as const;

const SHOWN: Readonly<Record<SpillRead['state'], ShownPayload['state']>> = {
  present: 'spilled_included',
  expired: 'expired',
  unavailable: 'unavailable',
};

/**
 * Returns one payload per message, in the order given. A large payload is read from the spill store, and is `expired`
 * once its time is over. Between groups of reads the loop does other work. All reads of one answer take one turn of
 * `ReadTurns` together. If each read took a turn, an answer would hold its first payloads in memory until the last
 * turn.
 */
export async function readPayloads(
  deps: Deps,
  requester: Principal | null,
  messages: readonly Message[],
): Promise<readonly ShownPayload[]> {
  return deps.readTurns.run(holderOf(requester), async () => {
    const shown: ShownPayload[] = [];
    for (const group of groupsOf(messages)) {
      // The text of each object is compared with its digest, which takes a millisecond for each mebibyte.
      if (shown.length > 0) await new Promise<void>((resolve) => deps.loop.afterOthers(resolve));
      shown.push(...(await Promise.all(group.map((message) => readOne(deps, message)))));
    }
    return shown;
  });
}

function* groupsOf(messages: readonly Message[]): Generator<readonly Message[]> {
  let group: Message[] = [];
  let bytes = 0;
  for (const message of messages) {
    const more = message.spill?.bytes ?? 0;
    if (group.length === AT_ONCE.objects || (group.length > 0 && bytes + more > AT_ONCE.bytes)) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(message);
    bytes += more;
  }
  if (group.length > 0) yield group;
}

async function readOne(deps: Deps, { payload, spill }: Message): Promise<ShownPayload> {
  if (payload !== null) return { state: 'included', text: payload };
  if (spill === null) return { state: 'none', text: null };
  if (deps.clock.now() >= spill.expiresAt) return { state: 'expired', text: null };
  if (spill.name === null) return { state: 'unavailable', text: null };
  const read = await readSafely(deps, { ...spill, name: spill.name });
  return { state: SHOWN[read.state], text: read.state === 'present' ? read.text : null };
}

/**
 * Reads an object; `unavailable` if the store fails. An operator's own store may throw, or return another text than the
 * stored one.
 */
async function readSafely({ spill, log, crypto }: Deps, ref: Parameters<typeof spill.read>[0]): Promise<SpillRead> {
  try {
    const read = await spill.read(ref);
    // A managed store has already checked the digest.
    const whole = read.state !== 'present' || spill.managed || crypto.sha256(read.text) === ref.sha256;
    if (whole) return read;
  } catch (error) {
    log.warn({ err: error }, 'a stored payload could not be read');
  }
  return { state: 'unavailable' };
}

// Stores large payloads in the spill store before the act that refers to them, and discards them if that act fails.

/** Whether a payload is kept in the spill store. */
export function isLarge(text: JsonText): boolean {
  return longerThan(text, INLINE_PAYLOAD_BYTES);
}

/**
 * Prepares payloads for history. A small payload stays in the message; a large one is written to the spill store before
 * the act that refers to it.
 */
export type PayloadStorage = ReturnType<typeof createPayloadStorage>;

export function createPayloadStorage(deps: Pick<Deps, 'spill' | 'clock' | 'crypto' | 'log' | 'metrics' | 'backend'>) {
  const { spill, clock, crypto, metrics, log } = deps;
  // The stored object of a payload expires at the same time as its message.
  const { retentionMs } = deps.backend.history;
  const put = async (text: JsonText, userId: string): Promise<StoredPayload> => {
    try {
      const ref = await spill.put(text, clock.now() + retentionMs, userId);
      metrics.count('payloads_spilled');
      return { payload: null, spill: ref };
    } catch (error) {
      metrics.count('payloads_unstored');
      throw error instanceof CallboardError ? error : storeFailed(error);
    }
  };
  const keep = (text: JsonText | null, userId: string): MaybePromise<StoredPayload> =>
    text !== null && isLarge(text) ? put(text, userId) : inline(text);
  const note = (text: JsonText | null): StoredPayload => {
    if (text === null || !isLarge(text)) return inline(text);
    const sha256 = crypto.sha256(text);
    return {
      payload: null,
      spill: { name: null, bytes: utf8Length(text), sha256, expiresAt: clock.now() + retentionMs },
    };
  };
  return {
    /**
     * Prepares a payload for history, in the same tick if it is small. Throws `share_exceeded` or `store_full` (share
     * `spilled_bytes`).
     */
    keep,
    /** Keeps a small payload whole, and only size and digest of a large one. Writes nothing to the spill store. */
    note,
    /**
     * Returns the error that `keep` would throw now; null if it would throw none. `unknown`: the store cannot tell
     * without writing. Writes nothing.
     */
    preview(text: JsonText | null, userId: string): MaybePromise<CallboardError | 'unknown' | null> {
      if (text === null || !isLarge(text)) return null;
      return spill.preview ? spill.preview(utf8Length(text), userId) : 'unknown';
    },
    /**
     * Does the same as `keep`, for an event that has happened already and must be recorded: if storing fails, only size
     * and digest are kept. Never throws.
     */
    keepAnyway(text: JsonText | null, userId: string): MaybePromise<StoredPayload> {
      const kept = keep(text, userId);
      if (!(kept instanceof Promise)) return kept;
      return kept.catch((error: unknown) => {
        log.warn({ err: error }, 'a payload could not be stored: only its size and digest are kept');
        return note(text);
      });
    },
    /** Removes the stored object of a payload whose message was not retained. Never throws. */
    discard({ spill: ref }: StoredPayload): void {
      if (!ref || ref.name === null || !spill.managed) return;
      const failed = (error: unknown): void =>
        log.warn({ err: error }, 'could not remove a stored payload that no message refers to');
      try {
        const done = spill.discard({ ...ref, name: ref.name });
        if (done instanceof Promise) done.catch(failed);
      } catch (error) {
        failed(error);
      }
    },
  };
}

function inline(text: JsonText | null): StoredPayload {
  return text === null ? NO_PAYLOAD : { payload: text, spill: null };
}

/** Converts the error of a spill store; an operator's own store may throw any error. */
function storeFailed(cause: unknown): CallboardError {
  return new CallboardError('store_full', 'The payload could not be stored.', { cause, share: 'spilled_bytes' });
}

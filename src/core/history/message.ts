/** The types of a retained message and its payload, and the ports of history and of the spill store. */
import type { CallerLabel } from '../auth/caller-label.ts';
import type { LinkDetails } from '../connections/link-row.ts';
import type { CallboardError } from '../errors.ts';
import { isId, suffixSegments } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { ObservedSource } from '../completeness.ts';
import type { PageRequest, Scan } from '../page.ts';

/**
 * The kinds of rows in a link history: one when a client link opened, and one when it ended. The end is `link_replaced`
 * if a newer link replaced the link, and `link_closed` otherwise.
 */
export const LINK_KINDS = ['link_opened', 'link_closed', 'link_replaced'] as const;
export type LinkMessageKind = (typeof LINK_KINDS)[number];

export const MESSAGE_KINDS = [
  ...(['command', 'progress', 'result', 'error', 'cancel', 'event', 'late_result'] as const),
  ...LINK_KINDS,
  // Another kind in link histories, which belongs to no link: the relay was down for a while and started again on its
  // data directory.
  'relay_away',
] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

/**
 * The error with which a command ended: at most 64 characters of code and 256 of message. Never contains raw details, a
 * stack or an exception object.
 */
export type TerminalError = { readonly code: string; readonly message: string };

/**
 * A reference to a payload of more than INLINE_PAYLOAD_BYTES. `name`: null if the payload could not be stored; then
 * only its size and digest are known.
 */
export type PayloadRef = Omit<SpillRef, 'name'> & { readonly name: string | null };

/** A payload as its message stores it: its text, or a reference to it. Both are null if there is no payload. */
export type StoredPayload = { readonly payload: JsonText | null; readonly spill: PayloadRef | null };

export const NO_PAYLOAD: StoredPayload = { payload: null, spill: null };

/** A message to write to history. */
export type NewMessage = StoredPayload & {
  readonly id: string;
  readonly userId: string;
  /**
   * The part of the stream's key after the user: `clients/<client>`, `links`, `sites/<site>/events`, or any other
   * suffix under which a host ingests.
   */
  readonly suffix: string;
  readonly kind: MessageKind;
  readonly clientId: string | null;
  readonly instanceId: string | null;
  readonly commandId: string | null;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly error: TerminalError | null;
  /**
   * The details of a link, in messages of LINK_KINDS; absent in all others. A message with these details has no
   * payload, error, command or trace.
   */
  readonly link?: LinkDetails;
  /** The context that the call named, in messages about its command. Absent if it named none. */
  readonly contextId?: string | undefined;
  /** The program that made the call, in messages of the kind `command`. Absent if the call named none. */
  readonly callerLabel?: CallerLabel | undefined;
};

/**
 * A stored message. Immutable. `seq`: its number in its stream, which grows and is never reused. `at`: when it was
 * written, in epoch milliseconds. `payloadBytes`: the length of the payload itself, inline or spilled.
 */
export type Message = NewMessage & { readonly seq: number; readonly at: number; readonly payloadBytes: number };

/** Whether a message's payload is shown and, if it is not, why. */
export type PayloadState = 'redacted' | 'included' | 'spilled_included' | 'expired' | 'unavailable' | 'none';

/**
 * A payload as it is shown. `text`: the payload in the states `included` and `spilled_included`; null in all other
 * states.
 */
export type ShownPayload = { readonly state: PayloadState; readonly text: JsonText | null };

export function streamKey(userId: string, suffix: string): string {
  return `${userId}/${suffix}`;
}

/**
 * The stream with a user's link history. Only the acts that bind and unbind links write to it. It has bounds of its own
 * (LINK_MESSAGES, LINK_BYTES), so a client that reconnects all the time evicts no message of other streams.
 */
export const LINK_STREAM = 'links';

export function isLinkKind(kind: string): kind is LinkMessageKind {
  return LINK_KINDS.some((known) => known === kind);
}

export function clientStream(clientId: string): string {
  return `clients/${clientId}`;
}

/**
 * Splits the full key of a stream at the first `/`, because user ids contain none. Null if there is no `/`, or if a
 * part is empty.
 */
export function splitStreamKey(key: string): { readonly userId: string; readonly suffix: string } | null {
  const cut = key.indexOf('/');
  return cut <= 0 || cut === key.length - 1 ? null : { userId: key.slice(0, cut), suffix: key.slice(cut + 1) };
}

export const STREAM_FORM = `expected <user>/<suffix>, the suffix 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by "/"`;

export function isSuffix(text: string): boolean {
  return suffixSegments(text)?.every(isId) ?? false;
}

// The storage port of history: messages by user and stream.

/**
 * A stream. The last three members are null if the backend cannot compute them cheaply (capability
 * `cheapStreamSummaries`).
 */
export type StreamSummary = {
  readonly userId: string;
  readonly suffix: string;
  readonly messageCount: number | null;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
};

export type StreamKey = Pick<StreamSummary, 'userId' | 'suffix'>;
/** The key of one stored message. */
export type MessageKey = StreamKey & Pick<Message, 'seq' | 'at'>;

export type MessageFilter = {
  /** The time at which a message was written must lie between these bounds (exclusive, epoch milliseconds). */
  readonly afterTime: number | null;
  readonly beforeTime: number | null;
  /** The kinds to match; null: every kind. */
  readonly kinds: readonly MessageKind[] | null;
};

export const MESSAGE_ORDERS = ['oldest_first', 'newest_first'] as const;
export type MessageOrder = (typeof MESSAGE_ORDERS)[number];

/**
 * A page of messages. The default order is `oldest_first`. A position is valid only for the order in which it was
 * returned.
 */
export type MessagePage = PageRequest & { readonly order?: MessageOrder | undefined };

/** A message to ingest. Its deduplication mark is stored under user, client and message id. */
export type IngestedMessage = NewMessage & { readonly clientId: string };

export type IngestResult =
  | { readonly kind: 'retained'; readonly message: Message }
  /** A message with the same id was ingested within the deduplicator's TTL. */
  | { readonly kind: 'duplicate'; readonly messageId: string };

/**
 * The bounds of a sample: a number of messages and a number of bytes. `of`: whether the bytes of the stored rows or of
 * the payloads are counted. If `payloads`, messages without a payload are skipped. The first message is always
 * returned, even if it exceeds `bytes`.
 */
export type SampleBounds = { readonly messages: number; readonly bytes: number; readonly of: 'stored' | 'payloads' };

export type RawSample = {
  /**
   * The messages of the sample. `stored`: a JSON object with the message and everything that this backend stores with
   * it.
   */
  readonly rows: readonly { readonly message: Message; readonly stored: JsonText }[];
  /** Whether the bounds excluded messages. */
  readonly cut: boolean;
  readonly gaps: readonly ObservedSource[];
};

/**
 * The stored messages by user and stream, in the order of writing. They are bounded by number, age and bytes. Rows
 * beyond a bound are never returned. If rows were evicted early for lack of room, answers that could have contained
 * them report a gap (`evicted`).
 */
export interface HistoryStore {
  /**
   * The longest time for which a message is stored, in milliseconds. The spilled objects to which it refers expire at
   * the same time.
   */
  readonly retentionMs: number;
  /**
   * Writes a message. Atomic: the whole message is written or nothing. The backend sets `at` and `seq`, in the order of
   * writing.
   */
  retain(message: NewMessage): MaybePromise<Message>;
  /**
   * Writes a message that may be sent more than once. One atomic act sets its deduplication mark (user, client, id),
   * changes the counters, and writes the message. A duplicate is only counted.
   */
  ingest(message: IngestedMessage): MaybePromise<IngestResult>;
  /** Lists one user's streams, ordered by suffix. `prefix`: only suffixes that begin with it; null: all. */
  streams(userId: string, prefix: string | null, page: PageRequest): MaybePromise<Scan<StreamSummary>>;
  /** Returns for each user, in the given order, the first streams and the total number. Reads all users together. */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): MaybePromise<
    readonly {
      readonly total: number;
      readonly rows: readonly StreamSummary[];
      readonly gaps: readonly ObservedSource[];
    }[]
  >;
  /**
   * Lists one stream's messages in the order of `seq`, or in the reverse order. Null if there is no such stream. Rows
   * that are appended or removed between two pages do not repeat or hide other rows. In the order `newest_first`,
   * messages that are appended after the first page appear on no later page. A page may end early, after
   * PAGE_READ_BYTES of payloads; it then has the position where the next page continues.
   */
  messages(
    userId: string,
    suffix: string,
    filter: MessageFilter,
    page: MessagePage,
  ): MaybePromise<Scan<Message> | null>;
  /**
   * Lists the messages about a command, from all streams of the user, in the order of time, stream and `seq`, or in the
   * reverse order. Scans a bounded number of rows.
   */
  ofCommand(userId: string, commandId: string, page: MessagePage): MaybePromise<Scan<Message>>;
  /**
   * Returns the newest messages of one stream, newest first, in the form in which this backend stores them; `stream`
   * null: of all streams. Null if there is no such stream.
   */
  sample(
    stream: { readonly userId: string; readonly suffix: string } | null,
    bounds: SampleBounds,
  ): MaybePromise<RawSample | null>;
  /** Lists the users that have a stream, with the number of their streams, ordered by user. */
  users(page: PageRequest): MaybePromise<Scan<{ readonly userId: string; readonly count: number }>>;
}

// The storage port of the spill store, which stores large payloads outside the history.

/**
 * A reference to a stored payload. The object is immutable, and expires at `expiresAt` (epoch milliseconds) even if the
 * reference still exists.
 */
export type SpillRef = {
  readonly name: string;
  /** The length of the text as UTF-8, in bytes. */
  readonly bytes: number;
  /** The SHA-256 of the text, base64url. */
  readonly sha256: string;
  readonly expiresAt: number;
};

/**
 * The result of reading an object. `expired`: its time is over, even if the object still exists. `unavailable`: the
 * object is lost, damaged or unreadable.
 */
export type SpillRead =
  | { readonly state: 'present'; readonly text: JsonText }
  | { readonly state: 'expired' }
  | { readonly state: 'unavailable' };

/**
 * Stores payloads that are too large for a history row. `put` returns a reference only after the object was stored. So
 * a crash may leave an object without a reference, but never a reference without an object.
 */
export interface SpillStore {
  /** Describes the store, without any secrets. */
  readonly kind: string;
  /** Whether the relay may remove objects from the store. It never does if the operator provides the store. */
  readonly managed: boolean;
  /**
   * Stores an object, and counts its bytes in this user's share `spilled_bytes`. `expiresAt`: epoch milliseconds.
   * Throws `share_exceeded` if the user exceeds its guarantee while room is short, and `store_full` if there is no
   * room. In both cases nothing is stored.
   */
  put(text: JsonText, expiresAt: number, userId: string): Promise<SpillRef>;
  /**
   * Returns the error that `put` would throw now for an object of this size; null if it would throw none; `unknown` if
   * the store cannot tell without writing. Writes and counts nothing. Absent if the store can never tell.
   */
  preview?(bytes: number, userId: string): MaybePromise<CallboardError | 'unknown' | null>;
  /**
   * Removes an object whose reference was never used, so that a refused request leaves nothing behind. Never called on
   * an unmanaged store.
   */
  discard(ref: SpillRef): MaybePromise<void>;
  /** Reads an object and checks its size and digest. Never throws because of an invalid reference. */
  read(ref: SpillRef): Promise<SpillRead>;
  /**
   * Removes the expired objects of a managed store, and returns their number. Objects that expired within the last hour
   * may remain. Returns 0 for an unmanaged store, which it leaves alone.
   */
  clean(): MaybePromise<number>;
  /** Frees the resources of the store in this process. Called when a relay that opened the store itself has closed. */
  close?(): void;
}

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
 * The kinds of rows of a link history. One row says that a client link opened, and one that it ended: `link_replaced`
 * if a newer link took over, else `link_closed`.
 */
export const LINK_KINDS = ['link_opened', 'link_closed', 'link_replaced'] as const;
export type LinkMessageKind = (typeof LINK_KINDS)[number];

export const MESSAGE_KINDS = [
  ...(['command', 'progress', 'result', 'error', 'cancel', 'event', 'late_result'] as const),
  ...LINK_KINDS,
  // A row of a link history, too, but of no link: the relay had been away, and started on its data directory.
  'relay_away',
] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

/**
 * The error that ended a command: at most 64 characters of code and 256 of message. Never holds raw details, a stack or
 * an exception object.
 */
export type TerminalError = { readonly code: string; readonly message: string };

/**
 * Refers to a payload of more than INLINE_PAYLOAD_BYTES. `name` is null if the payload could not be stored; then only
 * its size and digest are known.
 */
export type PayloadRef = Omit<SpillRef, 'name'> & { readonly name: string | null };

/** A payload as a message keeps it: its text, or a reference to it. Both null: there is no payload. */
export type StoredPayload = { readonly payload: JsonText | null; readonly spill: PayloadRef | null };

export const NO_PAYLOAD: StoredPayload = { payload: null, spill: null };

/** A message to retain. */
export type NewMessage = StoredPayload & {
  readonly id: string;
  readonly userId: string;
  /**
   * The part of the stream's key after the user: `clients/<client>`, `links`, `sites/<site>/events`, or any other
   * suffix that a host ingests under.
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
   * The details of a link, in messages of the kinds LINK_KINDS; absent in all others. A message with these details has
   * no payload, error, command or trace.
   */
  readonly link?: LinkDetails;
  /** The context that the call named, in messages about its command. Absent: it named none. */
  readonly contextId?: string | undefined;
  /** The program that made the call, in messages of the kind `command`. Absent: the call named none. */
  readonly callerLabel?: CallerLabel | undefined;
};

/**
 * A retained message. Immutable. `seq` is its position in its stream: it grows and is never reused. `at` is the time of
 * retention, epoch milliseconds. `payloadBytes` is the length of the payload itself, inline or stored.
 */
export type Message = NewMessage & { readonly seq: number; readonly at: number; readonly payloadBytes: number };

/** Whether a message's payload is shown, and why not. */
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
 * The stream of a user's link history. Only the acts that bind and unbind links write it. Its bounds are its own
 * (LINK_MESSAGES, LINK_BYTES), so that a client that reconnects all the time evicts no message of another stream.
 */
export const LINK_STREAM = 'links';

export function isLinkKind(kind: string): kind is LinkMessageKind {
  return LINK_KINDS.some((known) => known === kind);
}

export function clientStream(clientId: string): string {
  return `clients/${clientId}`;
}

/**
 * Splits the full key of a stream at the first `/`, because no user id holds one. Null if there is no `/` or a part is
 * empty.
 */
export function splitStreamKey(key: string): { readonly userId: string; readonly suffix: string } | null {
  const cut = key.indexOf('/');
  return cut <= 0 || cut === key.length - 1 ? null : { userId: key.slice(0, cut), suffix: key.slice(cut + 1) };
}

export const STREAM_FORM = `expected <user>/<suffix>, the suffix 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by "/"`;

export function isSuffix(text: string): boolean {
  return suffixSegments(text)?.every(isId) ?? false;
}

// The port of history: retained messages by user and stream.

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
/** The key of one retained message. */
export type MessageKey = StreamKey & Pick<Message, 'seq' | 'at'>;

export type MessageFilter = {
  /** The bounds of the time of retention, both exclusive; epoch milliseconds. */
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

/** A message that names its client. Its deduplication mark is kept under user, client and message id. */
export type IngestedMessage = NewMessage & { readonly clientId: string };

export type IngestResult =
  | { readonly kind: 'retained'; readonly message: Message }
  /** A message with this id was ingested within the deduplicator's TTL. */
  | { readonly kind: 'duplicate'; readonly messageId: string };

/**
 * The bounds of a sample: a number of messages, and a number of bytes, counted over the stored rows or over the
 * payloads (`of`). The first message is returned even if it alone exceeds `bytes`. With `payloads`, messages without a
 * payload are skipped.
 */
export type SampleBounds = { readonly messages: number; readonly bytes: number; readonly of: 'stored' | 'payloads' };

export type RawSample = {
  /**
   * The messages of the sample. `stored`: a JSON object with the message and everything that this backend stores with
   * it.
   */
  readonly rows: readonly { readonly message: Message; readonly stored: JsonText }[];
  /** Whether a bound excluded messages. */
  readonly cut: boolean;
  readonly gaps: readonly ObservedSource[];
};

/**
 * Retained messages by user and stream, in the order of retention. Bounded by count, age and bytes. Rows beyond a bound
 * are never shown. Rows that were dropped early for lack of room are reported as a gap (`evicted`) in the answers that
 * could have contained them.
 */
export interface HistoryStore {
  /** The maximum time that a message is retained, in milliseconds. The objects that it refers to expire with it. */
  readonly retentionMs: number;
  /**
   * Retains a message. Atomic: the message is retained whole or not at all, and ordered within its stream. The backend
   * sets `at` and `seq`.
   */
  retain(message: NewMessage): MaybePromise<Message>;
  /**
   * Does the same as `retain`, for a message that may be sent again. One atomic act sets its deduplication mark (user,
   * client, id), changes the counters and retains the message. A duplicate is counted and changes nothing else.
   */
  ingest(message: IngestedMessage): MaybePromise<IngestResult>;
  /** Lists one user's streams in order of suffix. `prefix` selects the suffixes that begin with it; null: all. */
  streams(userId: string, prefix: string | null, page: PageRequest): MaybePromise<Scan<StreamSummary>>;
  /** Returns for each user, in the order given, the first streams and the total number. Reads all users together. */
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
   * Lists one stream's messages in order of `seq`, or in reverse order. Null if there is no such stream. Rows that are
   * appended or dropped between two pages neither repeat nor hide other rows. In the order `newest_first`, messages
   * appended after the first page appear on no later page. A page may end early, with its position, after
   * PAGE_READ_BYTES of payloads.
   */
  messages(
    userId: string,
    suffix: string,
    filter: MessageFilter,
    page: MessagePage,
  ): MaybePromise<Scan<Message> | null>;
  /**
   * Lists the messages of a command in all retained streams of the user, in order of (time, stream, seq) or in reverse
   * order. May scan a bounded number of rows.
   */
  ofCommand(userId: string, commandId: string, page: MessagePage): MaybePromise<Scan<Message>>;
  /**
   * Returns the newest messages of one stream, or of all (`stream` null), newest first, as this backend stores them.
   * Null: no such stream.
   */
  sample(
    stream: { readonly userId: string; readonly suffix: string } | null,
    bounds: SampleBounds,
  ): MaybePromise<RawSample | null>;
  /** Lists the users that have a stream, with the number of their streams, in order of user. */
  users(page: PageRequest): MaybePromise<Scan<{ readonly userId: string; readonly count: number }>>;
}

// The port of the spill store, which keeps large payloads outside the history.

/**
 * Refers to a stored payload. Immutable: the object expires at `expiresAt` (epoch milliseconds) whatever happens to the
 * reference.
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
 * The result of reading an object. `expired`: the object has expired, even if it still exists. `unavailable`: the
 * object is lost, damaged or unreadable.
 */
export type SpillRead =
  | { readonly state: 'present'; readonly text: JsonText }
  | { readonly state: 'expired' }
  | { readonly state: 'unavailable' };

/**
 * Stores payloads that are too large for a history message. A reference is returned only after its object is stored, so
 * a crash may leave an object without a reference, but no reference to an object that was never stored.
 */
export interface SpillStore {
  /** Describes the store, without secrets. */
  readonly kind: string;
  /** Whether the relay removes objects from the store. It removes none from a store that the operator provides. */
  readonly managed: boolean;
  /**
   * Stores an object and counts its bytes for this user, in the share `spilled_bytes`. `expiresAt` is in epoch
   * milliseconds. Throws `share_exceeded` if the user holds more than their guarantee while room is short, and
   * `store_full` if there is no room; in both cases nothing is stored.
   */
  put(text: JsonText, expiresAt: number, userId: string): Promise<SpillRef>;
  /**
   * Returns the error that `put` would throw now for an object of this size; null if it would throw none. `unknown`:
   * the store can tell only by writing. Writes and counts nothing. A store without this method can never tell.
   */
  preview?(bytes: number, userId: string): MaybePromise<CallboardError | 'unknown' | null>;
  /**
   * Removes an object whose reference was not given to anyone, so that a refused request leaves nothing behind. Never
   * called on an unmanaged store.
   */
  discard(ref: SpillRef): MaybePromise<void>;
  /** Reads an object and checks its size and digest. Never throws for an invalid reference. */
  read(ref: SpillRef): Promise<SpillRead>;
  /**
   * Removes the expired objects of a managed store and returns their number; objects that expired within the last hour
   * may stay. An unmanaged store is not touched (0).
   */
  clean(): MaybePromise<number>;
  /** Frees what the store holds in the process. Called once a relay that opened the store itself has closed. */
  close?(): void;
}

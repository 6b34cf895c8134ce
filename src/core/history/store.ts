/** The port of history: retained messages by user and stream. */
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { ObservedSource, PageRequest, Scan } from '../page.ts';
import type { Message, MessageKind, NewMessage } from './message.ts';

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

/** A message of a known client. Its deduplication mark is kept under user, client and message id. */
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
  /** Returns for each user, in the order given, the first streams and the total number. One round trip. */
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

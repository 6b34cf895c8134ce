import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';
import type { ObservedSource, PageRequest, Scan } from '../page.ts';
import type { Message, MessageKind, NewMessage } from './message.ts';

/** Null where the backend cannot tell cheaply (capability `cheapStreamSummaries`). */
export type StreamSummary = {
  readonly userId: string;
  readonly suffix: string;
  readonly messageCount: number | null;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
};

export type MessageFilter = {
  /** Both exclusive, epoch milliseconds. */
  readonly afterTime: number | null;
  readonly beforeTime: number | null;
  /** Null: every kind. */
  readonly kinds: readonly MessageKind[] | null;
};

export const MESSAGE_ORDERS = ['oldest_first', 'newest_first'] as const;
export type MessageOrder = (typeof MESSAGE_ORDERS)[number];

/** A page of messages. Without an order, `oldest_first`; a position belongs to the order in which it was answered. */
export type MessagePage = PageRequest & { readonly order?: MessageOrder | undefined };

/** A message whose client is known: its mark is kept under user, client and id. */
export type IngestedMessage = NewMessage & { readonly clientId: string };

export type IngestResult =
  | { readonly kind: 'retained'; readonly message: Message }
  /** It was ingested within the deduplicator's TTL, under this id. */
  | { readonly kind: 'duplicate'; readonly messageId: string };

/** At most so many messages, and no more than fit into so many bytes of `of`; one message is given even where it alone is larger. */
export type SampleBounds = { readonly messages: number; readonly bytes: number; readonly of: 'stored' | 'payloads' };

export type RawSample = {
  /** `stored`: the message with whatever this backend keeps beside it, an object. */
  readonly rows: readonly { readonly message: Message; readonly stored: JsonText }[];
  /** Whether a bound left messages out. */
  readonly cut: boolean;
  readonly gaps: readonly ObservedSource[];
};

/**
 * What happened, per user and stream, in the order retained. Bounded by count, age and bytes: rows beyond a bound are never shown, and
 * what was dropped early for lack of room is a gap (`evicted`) in the answers that it could have stood in.
 */
export interface HistoryStore {
  /** How long a message is kept at most; what it refers to expires with it. Milliseconds. */
  readonly retentionMs: number;
  /** Atomic per message: retained whole or not at all, ordered within its stream. The backend stamps `at` and `seq`. */
  retain(message: NewMessage): Maybe<Message>;
  /**
   * As `retain`, for a message that may come again: its dedup mark (user, client, id), the counters and the message are one act. A duplicate
   * is counted and changes nothing else.
   */
  ingest(message: IngestedMessage): Maybe<IngestResult>;
  /** One user's streams in order of suffix; `prefix` of the suffix. */
  streams(userId: string, prefix: string | null, page: PageRequest): Maybe<Scan<StreamSummary>>;
  /** Per user asked for: its first streams, and how many there are in all. One round trip. */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): Maybe<
    readonly {
      readonly total: number;
      readonly rows: readonly StreamSummary[];
      readonly gaps: readonly ObservedSource[];
    }[]
  >;
  /**
   * One stream's messages in order of `seq`, or in the reverse of it. Null when there is no such stream. Rows that are appended or dropped
   * between two pages neither repeat nor hide others: newest first, what is appended after the first page is on none that follows it.
   */
  messages(userId: string, suffix: string, filter: MessageFilter, page: MessagePage): Maybe<Scan<Message> | null>;
  /** Messages of a command over the user's retained streams, in order of (time, stream, seq) or in the reverse of it. May scan; bounded. */
  ofCommand(userId: string, commandId: string, page: MessagePage): Maybe<Scan<Message>>;
  /** The newest messages as this backend stores them, newest first: of one stream, or of all. Null when there is no such stream. */
  sample(
    stream: { readonly userId: string; readonly suffix: string } | null,
    bounds: SampleBounds,
  ): Maybe<RawSample | null>;
  /** Users that have a stream, with how many, in order of user. */
  users(page: PageRequest): Maybe<Scan<{ readonly userId: string; readonly count: number }>>;
}

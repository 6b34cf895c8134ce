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

/**
 * What happened, per user and stream, in the order retained. Bounded by count, age and bytes: rows beyond a bound are never shown, and
 * what was dropped early for lack of room is a gap (`evicted`) in the answers that it could have stood in.
 */
export interface HistoryStore {
  /** Atomic per message: retained whole or not at all, ordered within its stream. The backend stamps `at` and `seq`. */
  retain(message: NewMessage): Maybe<Message>;
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
  /** One stream's messages in order of `seq`. Null when there is no such stream. */
  messages(userId: string, suffix: string, filter: MessageFilter, page: PageRequest): Maybe<Scan<Message> | null>;
  /** Messages of a command over the user's retained streams, in order of (time, stream, seq). May scan; bounded. */
  ofCommand(userId: string, commandId: string, page: PageRequest): Maybe<Scan<Message>>;
  /** Users that have a stream, with how many, in order of user. */
  users(page: PageRequest): Maybe<Scan<{ readonly userId: string; readonly count: number }>>;
}

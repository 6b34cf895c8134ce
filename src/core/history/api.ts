/** The interface for reading history. Types only. */
import type { Requester } from '../auth/principal.ts';
import type { PageArgs } from '../cursor.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Page, Summary } from '../page.ts';
import type { Message, MessageKind, ShownPayload } from './message.ts';
import type { RawMessages, RawQuery } from './raw.ts';
import type { MessageKey, MessageOrder, StreamKey, StreamSummary } from './store.ts';

/** The default order is `oldest_first`. A cursor is valid only for the order in which it was given. */
export type MessagePageArgs = PageArgs & { readonly order?: MessageOrder | null | undefined };

export type MessageQuery = {
  readonly stream: string;
  readonly afterTime?: number | null | undefined;
  readonly beforeTime?: number | null | undefined;
  readonly kinds?: readonly MessageKind[] | null | undefined;
};

export interface Histories {
  streams(requester: Requester, userId: string, prefix: string | null, page: PageArgs): Promise<Page<StreamSummary>>;
  /** Returns for each user the page that `streams` gives without a prefix. One round trip. For nested fields. */
  ofUsers(
    requester: Requester,
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly Summary<StreamSummary>[]>;
  /** Lists the messages of a stream. Null if there is no such stream, or if it belongs to another user. */
  messages(requester: Requester, query: MessageQuery, page: MessagePageArgs): Promise<Page<Message> | null>;
  ofCommand(requester: Requester, userId: string, commandId: string, page: MessagePageArgs): Promise<Page<Message>>;
  /** Returns streams that the requester may read: one answer per key, in order; null where there is no such stream. */
  manyStreams(keys: readonly StreamKey[]): Promise<readonly (StreamSummary | null)[]>;
  /**
   * Returns messages that the requester may read: one answer per key, in order; null for a message that is no longer
   * retained.
   */
  manyMessages(requester: Requester, keys: readonly MessageKey[]): Promise<readonly (Message | null)[]>;
  /**
   * Returns the payloads of messages, in order. Large payloads are fetched from the spill store. For nested fields,
   * after the messages were authorized and their payloads were requested.
   */
  payloads(requester: Requester, messages: readonly Message[]): Promise<readonly ShownPayload[]>;
  /**
   * Returns a raw sample. Admin only. Throws `raw_history_disabled` if the deployment does not allow it. Null: no such
   * stream.
   */
  raw(requester: Requester, query: RawQuery): Promise<RawMessages | null>;
  /**
   * Removes the expired objects of a managed spill store and returns their number. An unmanaged store is not touched
   * (0).
   */
  cleanSpill(): MaybePromise<number>;
}

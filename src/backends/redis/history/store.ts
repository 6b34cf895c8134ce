import { randomUUID } from 'node:crypto';
import type { Message, NewMessage } from '../../../core/history/message.ts';
import type { HistoryStore } from '../../../core/history/store.ts';
import { LINK_MESSAGES, STREAMS_PER_USER } from '../../../core/limits.ts';
import { createMessageReads } from './messages.ts';
import { payloadBytesOf, rowArgs, type HistoryParts } from './rows.ts';
import { listOf } from '../replies.ts';
import { createSample } from './sample.ts';
import { createStreamListings } from './streams.ts';
import type { Store } from '../store/store.ts';
import type { Reply } from '../types.ts';

export type RedisHistoryOptions = Omit<HistoryParts, 'streamsPerUser' | 'linkMessages'> & {
  /** STREAMS_PER_USER where absent. */
  readonly streamsPerUser?: number | undefined;
  /** LINK_MESSAGES where absent. */
  readonly linkMessages?: number | undefined;
};

/**
 * History over Redis. Nothing that is too old is shown or counted; it goes with later acts of its partition. A bound that is lowered takes
 * effect in a stream with the next message of it. `evicted`: a user's longest unwritten stream went for a new one too many.
 */
export function createRedisHistory(redis: RedisHistoryOptions): HistoryStore {
  const { store, retentionMs, streamMessages, streamsPerUser = STREAMS_PER_USER, linkMessages = LINK_MESSAGES } = redis;
  const parts: HistoryParts = { store, retentionMs, streamMessages, streamsPerUser, linkMessages };
  return {
    retentionMs,
    async retain(message) {
      const args = [store.hash('retain', randomUUID()), ...rowArgs(parts, message)];
      const [seq, at] = listOf(await store.act(store.partitionOfUser(message.userId), 'history-retain', args));
      return placed(message, seq, at);
    },
    async ingest(message) {
      const { userId, clientId, id } = message;
      const args = [markHash(store, { userId, clientId, messageId: id }), randomUUID(), ...rowArgs(parts, message)];
      const reply = listOf(await store.act(store.partitionOfUser(userId), 'history-ingest', args));
      const [kind, seq, at] = reply;
      if (kind === 'duplicate') return { kind: 'duplicate', messageId: id };
      return { kind: 'retained', message: placed(message, seq, at) };
    },
    ...createStreamListings(parts),
    ...createMessageReads(parts),
    sample: createSample(parts),
  };
}

/** A message as the deduplicator knows it. */
export type MarkName = { readonly userId: string; readonly clientId: string; readonly messageId: string };

/** The hash under which its mark stands. */
export function markHash(store: Pick<Store, 'hash'>, { userId, clientId, messageId }: MarkName): string {
  return store.hash(userId, clientId, messageId);
}

function placed(message: NewMessage, seq: Reply | undefined, at: Reply | undefined): Message {
  return { ...message, seq: Number(seq), at: Number(at), payloadBytes: payloadBytesOf(message) };
}

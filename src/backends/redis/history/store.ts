/** Core's HistoryStore over Redis: appends messages here; messages.ts, sample.ts and streams.ts beside it read them. */
import { randomUUID } from 'node:crypto';
import type { Message, NewMessage, HistoryStore } from '../../../core/history/message.ts';
import type { ShareBounds } from '../../../core/shares/shares.ts';
import { boundsOfPartition } from '../shares/store.ts';
import { LINK_MESSAGES, STREAMS_PER_USER } from '../../../core/limits.ts';
import { createMessageReads } from './messages.ts';
import { payloadBytesOf, rowArgs, type HistoryParts } from './rows.ts';
import { listOf, type Reply } from '../types.ts';
import { createSample } from './sample.ts';
import { createStreamListings } from './streams.ts';
import type { Store } from '../store.ts';
export type RedisHistoryOptions = Omit<HistoryParts, 'streamsPerUser' | 'linkMessages' | 'shares'> & {
  /** The limits of shares; default SHARE_BOUNDS. */
  readonly bounds?: ShareBounds | undefined;
  /** The most streams of one user; default STREAMS_PER_USER. */
  readonly streamsPerUser?: number | undefined;
  /** The most rows of one user's link history; default LINK_MESSAGES. */
  readonly linkMessages?: number | undefined;
};

/**
 * Creates Core's HistoryStore over Redis. Messages that are too old are neither shown nor counted, and later acts of
 * their partition remove them. If the configured number of messages per stream is lowered, a stream is shortened with
 * its next message. If a user has too many streams, the one with the oldest last write is removed, which is reported as
 * `evicted`.
 */
export function createRedisHistory(redis: RedisHistoryOptions): HistoryStore {
  const { store, retentionMs, streamMessages, streamsPerUser = STREAMS_PER_USER, linkMessages = LINK_MESSAGES } = redis;
  const shares = JSON.stringify(boundsOfPartition(store, redis.bounds)['h']);
  const parts: HistoryParts = { store, retentionMs, streamMessages, streamsPerUser, linkMessages, shares };
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

/** The ids that identify a message for deduplication. */
export type MarkName = { readonly userId: string; readonly clientId: string; readonly messageId: string };

/** Returns the hash that names a message's deduplication mark. */
export function markHash(store: Pick<Store, 'hash'>, { userId, clientId, messageId }: MarkName): string {
  return store.hash(userId, clientId, messageId);
}

function placed(message: NewMessage, seq: Reply | undefined, at: Reply | undefined): Message {
  return { ...message, seq: Number(seq), at: Number(at), payloadBytes: payloadBytesOf(message) };
}

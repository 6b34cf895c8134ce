/** Tests the bounds of history in memory under a million messages. */
import { describe, expect, it } from 'vitest';
import { HISTORY_BYTES, INGEST_BATCH, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { toJson } from '../../src/core/json.ts';
import { admin, testCore, user } from '../kit/core.ts';

const MESSAGES = 1_000_000;
const USERS = 100;
const payload = toJson({ name: 'saved', data: 'x'.repeat(100) });

describe('retention under load', () => {
  it('keeps a million ingested messages within the byte bounds, drops the oldest first, and reports it', async () => {
    await using test = await testCore();
    const { history } = test.backend;
    const users = Array.from({ length: USERS }, (_, i) => user(`u${i}`));
    let most = 0;
    for (let sent = 0; sent < MESSAGES; sent += INGEST_BATCH) {
      const batch = Array.from({ length: INGEST_BATCH }, (_, i) => ({
        messageId: `m${sent + i}`,
        kind: 'event',
        streamSuffix: `sites/s${i % 2}/events`,
        clientId: 'tab',
        instanceId: 'i1',
        payload,
      }));
      const requester = users[(sent / INGEST_BATCH) % USERS] ?? null;
      const verdicts = await test.core.ingest.ingest(requester, batch);
      if (!verdicts.every(({ retained }) => retained)) throw new Error('one was not retained');
      most = Math.max(most, history.totals().bytes);
    }
    const { messages, evictedMessages, bytes } = history.totals();
    expect(most).toBeLessThanOrEqual(HISTORY_BYTES);
    expect(bytes).toBeGreaterThan(HISTORY_BYTES * 0.99);
    expect(messages + evictedMessages).toBe(MESSAGES);
    // The newest messages over all streams are kept, so each stream has lost only its beginning.
    const oldest = MESSAGES - messages;
    for (const { userId } of users.slice(0, 3)) {
      const page = await test.core.history.messages(admin, { stream: `${userId}/sites/s0/events` }, { first: 1000 });
      const places = (page?.nodes ?? []).map(({ id }) => Number(id.slice(1)));
      expect(places[0]).toBeGreaterThanOrEqual(oldest);
      expect(places[0]).toBeLessThan(oldest + USERS * INGEST_BATCH);
      expect(page?.completeness).toMatchObject({
        complete: false,
        sources: [{ complete: true }, { source: 'messages', complete: false, reason: 'evicted' }],
      });
    }
    const summaries = await test.core.history.streams(admin, 'u0', null, {});
    expect(summaries.nodes.map(({ messageCount }) => messageCount)).toEqual([messages / 200, messages / 200].map(near));
    function near(count: number): unknown {
      return expect.toSatisfy((found: number) => Math.abs(found - count) <= INGEST_BATCH);
    }
  });

  it('keeps one stream within its own bound, and reports no gap for that', async () => {
    await using test = await testCore();
    for (let sent = 0; sent < STREAM_MESSAGES * 2; sent += INGEST_BATCH) {
      const batch = Array.from({ length: INGEST_BATCH }, (_, i) => ({
        messageId: `m${sent + i}`,
        kind: 'event',
        streamSuffix: 'notes',
        clientId: 'tab',
        instanceId: 'i1',
        payload: null,
      }));
      await test.core.ingest.ingest(user('alice'), batch);
    }
    const page = await test.core.history.messages(admin, { stream: 'alice/notes' }, { first: 1 });
    expect(page?.nodes[0]?.id).toBe(`m${STREAM_MESSAGES}`);
    expect(page?.completeness.complete).toBe(true);
    expect(test.backend.history.totals().messages).toBe(STREAM_MESSAGES);
  });
});

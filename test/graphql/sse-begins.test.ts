/** Tests when the head of an event stream is sent: once its subscription has begun at all nodes. */
import { describe, expect, it } from 'vitest';
import type { Core } from '../../src/core/core.ts';
import { testCore } from '../kit/core.ts';
import { eventually } from '../kit/patience.ts';
import { startGraphqlServer } from './kit/graphql-server.ts';
import { subscribeRaw, type RawStream } from './kit/stream.ts';

/** A server whose other nodes know of no subscription until `told` is resolved. */
async function start() {
  await using parts = new AsyncDisposableStack();
  const { core } = parts.use(await testCore());
  const told = Promise.withResolvers<void>();
  const waiting: Core = Object.create(core, { subscribed: { value: () => told.promise } });
  const server = parts.use(await startGraphqlServer({ core: waiting }));
  const kept = parts.move();
  const open = (query: string) => {
    const state: { stream: RawStream | null } = { stream: null };
    const opened = subscribeRaw(server.url, query).then((stream) => (state.stream = stream));
    return { state, opened };
  };
  return { server, told, open, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

describe('a stream of one subscription', () => {
  it('is open for its reader once all nodes know of the subscription, which has begun before', async () => {
    await using at = await start();
    const { state, opened } = at.open('subscription { ticks }');
    await eventually(() => expect(at.server.subscriptions.feeds.size).toBe(1));
    await new Promise((done) => setImmediate(done));
    expect(state.stream).toBeNull();
    at.told.resolve();
    const stream = await opened;
    expect(stream.status).toBe(200);
    at.server.subscriptions.feeds.forEach((feed) => feed.push(7));
    await stream.until('7');
    stream.abort();
  });

  it('is open at once for an event that arrives before all nodes know', async () => {
    await using at = await start();
    const { opened } = at.open('subscription { ticks }');
    await eventually(() => expect(at.server.subscriptions.feeds.size).toBe(1));
    at.server.subscriptions.feeds.forEach((feed) => feed.push(7));
    const stream = await opened;
    await stream.until('7');
    stream.abort();
  });

  it('is open at once for an answer and for errors, and ends', async () => {
    await using at = await start();
    for (const query of ['{ __typename }', 'subscription { none }']) {
      const stream = await at.open(query).opened;
      await stream.until('event: complete');
      await stream.ended;
    }
  });
});

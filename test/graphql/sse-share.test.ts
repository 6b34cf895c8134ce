/** Tests subscriptions that are executed once for many subscribers. */
import { createClient } from 'graphql-sse';
import { describe, expect, it } from 'vitest';
import { startGraphqlServer, type GraphqlServer } from './kit/graphql-server.ts';
import { createNewsroom, type Newsroom } from './kit/newsroom.ts';
import { openRaw, subscribeRaw, type RawStream } from './kit/stream.ts';
import { settle } from '../kit/clock.ts';

const NEWS = 'subscription ($room: String) { news(room: $room) { text missed seenBy } }';
const COMPLETE = 'event: complete\ndata:\n\n';

type NewsServer = { readonly handler: GraphqlServer; readonly news: Newsroom };
async function opened(fastPath = true): Promise<NewsServer & AsyncDisposable> {
  const news = createNewsroom();
  const makeContext = ({ requester }: { readonly requester: unknown }): object => ({ requester });
  const handler = await startGraphqlServer({ schema: news.schema, makeContext, fastPath });
  return { handler, news, [Symbol.asyncDispose]: () => handler[Symbol.asyncDispose]() };
}
type Asking = { readonly requester?: string; readonly room?: string; readonly query?: string; readonly more?: object };
/** Opens a stream. Resolves once it is subscribed. */
async function listening(
  { handler, news }: NewsServer,
  { requester = 'alice', room = 'a', query = NEWS, more }: Asking = {},
) {
  const before = news.lifetimes();
  const stream = await subscribeRaw(handler.url, query, { requester, variables: { room, ...more } });
  await until(() => news.lifetimes() > before);
  await settle();
  return stream;
}
const resultsOf = (stream: RawStream): any[] =>
  [...stream.text().matchAll(/event: next\ndata: (.*)\n\n/g)].map(([, json = '']) => JSON.parse(json));
const texts = (stream: RawStream): string[] => resultsOf(stream).map(({ data }) => Object.values<any>(data)[0].text);

describe('a shared subscription', () => {
  it('is executed once for all members, without a requester, and each member is authorized itself', async () => {
    await using server = await opened();
    const streams = [await listening(server), await listening(server, { requester: 'bob' }), await listening(server)];
    expect(server.news.sources()).toBe(1);
    server.news.publish('a', 'one');
    await Promise.all(streams.map((stream) => stream.until('one')));
    expect(server.news.executions()).toBe(1);
    expect(server.news.authorized).toEqual(['alice', 'bob', 'alice']);
    const frame = 'event: next\ndata: {"data":{"news":{"text":"one","missed":0,"seenBy":"nobody"}}}\n\n';
    for (const stream of streams) expect(stream.text()).toBe(`:\n\n${frame}`);
    streams.forEach((stream) => stream.abort());
    await until(() => server.news.sources() === 0 && server.news.lifetimes() === 0);
  });

  it('gives no member what another member selected', async () => {
    await using server = await opened();
    const [a, b] = [await listening(server), await listening(server, { room: 'b' })];
    const aliased = await listening(server, {
      query: 'subscription ($room: String) { other: news(room: $room) { text } }',
    });
    for (const room of ['a', 'b']) server.news.publish(room, `of ${room}`);
    await Promise.all([a.until('of a'), b.until('of b'), aliased.until('of a')]);
    expect([texts(a), texts(b), texts(aliased)]).toEqual([['of a'], ['of b'], ['of a']]);
    expect(server.news.executions()).toBe(3);
  });

  it('separates members whose variables change the result', async () => {
    await using server = await opened();
    const query =
      'subscription ($room: String, $less: Boolean = false) { news(room: $room) { text missed @skip(if: $less) } }';
    const [whole, less, same] = [
      await listening(server, { query }),
      await listening(server, { query, more: { less: true } }),
      await listening(server, { query, more: { less: false } }),
    ];
    server.news.publish('a', 'one');
    await Promise.all([whole, less, same].map((stream) => stream.until('one')));
    expect([whole, less, same].map((stream) => resultsOf(stream)[0].data.news)).toEqual([
      { text: 'one', missed: 0 },
      { text: 'one' },
      { text: 'one', missed: 0 },
    ]);
    expect(server.news.executions()).toBe(2);
  });

  it.each([
    ['the field itself is not', 'subscription ($room: String) { own(room: $room) { text seenBy } }'],
    ['a field differs by viewer', 'subscription ($room: String) { news(room: $room) { text seenBy isMine } }'],
    ['a type may not be', 'subscription ($room: String) { news(room: $room) { text seenBy reader { name } } }'],
    [
      'a fragment differs by viewer',
      'subscription ($room: String) { news(room: $room) { ...F } } fragment F on Item { text seenBy ... on Item { isMine } }',
    ],
  ])('is separate for each viewer if %s', async (_, query) => {
    await using server = await opened();
    const [a, b] = [await listening(server, { query }), await listening(server, { query, requester: 'bob' })];
    expect(server.news.sources()).toBe(2);
    server.news.publish('a', 'one');
    await Promise.all([a.until('one'), b.until('one')]);
    const [first, second] = [a, b].map((stream) => Object.values<any>(resultsOf(stream)[0].data)[0]);
    expect([first.seenBy, second.seenBy]).toEqual(['alice', 'bob']);
    if (query.includes('isMine')) expect([first.isMine, second.isMine]).toEqual([true, false]);
  });

  it('ends for a member whose permission ended, at once, and continues for the others', async () => {
    await using server = await opened();
    const [alice, bob] = [await listening(server), await listening(server, { requester: 'bob' })];
    server.news.publish('a', 'before');
    await bob.until('before');
    server.news.publish('a', 'pending');
    server.news.revoke('bob');
    server.news.publish('a', 'after');
    await bob.ended;
    await alice.until('after');
    expect(texts(alice)).toEqual(['before', 'pending', 'after']);
    expect(bob.text()).not.toMatch(/pending|after/);
    expect(bob.text()).toMatch(/"code":"unauthenticated".*\n\nevent: complete\ndata:\n\n$/);
    expect(server.news.lifetimes()).toBe(1);
  });

  it('refuses a requester with the field name of its own document, as an unshared subscription would', async () => {
    await using server = await opened();
    await listening(server);
    const refused = async (name: 'news' | 'own '): Promise<string> => {
      const query = `subscription { x: ${name}(room: "secret") { text } }`;
      const stream = await subscribeRaw(server.handler.url, query, { requester: 'bob' });
      await stream.ended;
      return stream.text();
    };
    expect(await refused('news')).toContain('"code":"forbidden"');
    expect(await refused('news')).toBe((await refused('own ')).replace(':13', ':13'));
  });

  it('begins with what is published after the join', async () => {
    await using server = await opened();
    const first = await listening(server);
    server.news.publish('a', 'early');
    const second = await listening(server, { requester: 'bob' });
    server.news.publish('a', 'late');
    await Promise.all([first.until('late'), second.until('late')]);
    expect([texts(first), texts(second)]).toEqual([['early', 'late'], ['late']]);
  });

  it('fails for all if an event cannot be resolved, and does not reveal why', async () => {
    await using server = await opened();
    const stream = await listening(server, { query: 'subscription { news(room: "a") { later } }' });
    server.news.publish('a', 'one');
    await stream.ended;
    expect(stream.text()).toContain('"code":"internal"');
    expect(server.news.sources()).toBe(0);
  });

  it('carries an operation’s own id on a stream of several', async () => {
    await using server = await opened();
    const { shared, operate } = await single(server.handler);
    const own = await listening(server);
    await operate('a"\\1', NEWS);
    await operate('b', NEWS);
    await until(() => server.news.lifetimes() === 3);
    await settle();
    server.news.publish('a', 'one');
    server.news.publish('a', 'two');
    await Promise.all([own.until('two'), shared.until('two', 2)]);
    expect(server.news.executions()).toBe(2);
    const frames = [...shared.text().matchAll(/event: next\ndata: (.*)\n\n/g)].map(([, json = '']) => JSON.parse(json));
    expect(frames.map(({ id, payload }) => [id, payload.data.news.text])).toEqual([
      ['a"\\1', 'one'],
      ['a"\\1', 'two'],
      ['b', 'one'],
      ['b', 'two'],
    ]);
    await operate('b', null);
    await shared.until('event: complete\ndata: {"id":"b"}\n\n');
    expect(server.news.lifetimes()).toBe(2);
    shared.abort();
    await until(() => server.news.lifetimes() === 1);
  });

  it.each([true, false])(
    'gives the same bytes, shared or not (%s), and events of one tick read as if written separately',
    async (fastPath) => {
      await using server = await opened(fastPath);
      const query = NEWS.replace('seenBy', '');
      const [a, b] = [await listening(server, { query }), await listening(server, { query, requester: 'bob' })];
      const words = Array.from({ length: 90 }, (_, i) => randomText(i));
      for (const text of words) server.news.publish('a', text);
      server.news.publish('a', 'end');
      await Promise.all([a.until('"end"'), b.until('"end"')]);
      server.news.revoke('alice');
      await a.ended;
      const frames = [...words, 'end'].map(
        (text) => `event: next\ndata: ${JSON.stringify({ data: { news: { text, missed: 0 } } })}\n\n`,
      );
      expect(b.text()).toBe(`:\n\n${frames.join('')}`);
      const over = { errors: [{ message: 'The grant is over.', extensions: { code: 'unauthenticated' } }] };
      expect(a.text()).toBe(`${b.text()}event: next\ndata: ${JSON.stringify(over)}\n\n${COMPLETE}`);
      expect(server.news.executions()).toBe(fastPath ? 91 : 182);
    },
  );

  it.each([false, true])(
    'is understood by the official client, over one connection (%s) or many',
    async (singleConnection) => {
      await using server = await opened();
      const url = singleConnection ? `${server.handler.url}/stream` : server.handler.url;
      const client = (requester: string) =>
        singleConnection
          ? createClient({ singleConnection, url, headers: { authorization: `Bearer ${requester}` }, retryAttempts: 0 })
          : createClient({ url, headers: { authorization: `Bearer ${requester}` }, retryAttempts: 0 });
      const clients = [client('alice'), client('bob')];
      const received = clients.map(() => [] as unknown[]);
      const reading = clients.map(async (one, i) => {
        for await (const { data, errors } of one.iterate({ query: NEWS, variables: { room: 'a' } }))
          received[i]?.push(errors ?? data);
      });
      await until(() => server.news.lifetimes() === 2);
      await settle();
      server.news.publish('a', 'ü€😀');
      server.news.publish('a', 'two');
      await until(() => received.every(({ length }) => length === 2));
      server.news.revoke('bob');
      await reading[1];
      expect(received[1]?.[2]).toMatchObject([{ extensions: { code: 'unauthenticated' } }]);
      expect(received[0]).toEqual(['ü€😀', 'two'].map((text) => ({ news: { text, missed: 0, seenBy: 'nobody' } })));
      expect(server.news.executions()).toBe(2);
      await Promise.all([server.handler.closeHandler(), reading[0]?.catch(() => {})]);
      clients.forEach((one) => one.dispose());
    },
  );

  it('loses nothing of a burst of any length for a fast reader', async () => {
    await using server = await opened();
    const stream = await listening(server);
    for (let i = 0; i < 3000; i++) server.news.publish('a', `${i}`);
    await stream.until('"2999"');
    expect(resultsOf(stream).map(({ data }) => [data.news.text, data.news.missed])).toEqual(
      Array.from({ length: 3000 }, (_, i) => [`${i}`, 0]),
    );
  });
});

/**
 * Returns random text of characters that JSON escapes, characters that it does not escape, and characters that end
 * frames.
 */
function randomText(seed: number): string {
  const parts = [
    '\n',
    '\r',
    '\r\n\r\n',
    '\0',
    '"',
    '\\',
    ':\n\n',
    'data: ',
    'event: complete',
    '0\r\n\r\n',
    'ü€😀',
    '\u2028',
    '\ud800',
    '}',
  ];
  return Array.from({ length: (seed * 7) % 40 }, (_, i) => parts[(seed * 31 + i * i * 17) % parts.length]).join('');
}

async function single({ url }: GraphqlServer) {
  const at = `${url}/stream`;
  const bearer = { authorization: 'Bearer alice' };
  const reserved = await openRaw(at, { method: 'PUT', headers: bearer });
  await reserved.ended;
  const headers = { ...bearer, 'x-graphql-event-stream-token': reserved.text() };
  const shared = await openRaw(at, { headers: { ...headers, accept: 'text/event-stream' } });
  /** Sends an operation. `query` null: stops the operation instead. */
  const operate = (operationId: string, query: string | null): Promise<RawStream> =>
    query === null
      ? openRaw(`${at}?operationId=${operationId}`, { method: 'DELETE', headers })
      : openRaw(at, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify({ query, variables: { room: 'a' }, extensions: { operationId } }),
        });
  return { shared, operate };
}

async function until(met: () => boolean): Promise<void> {
  while (!met()) await new Promise((done) => setImmediate(done));
}

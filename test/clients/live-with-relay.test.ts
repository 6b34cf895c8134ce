/** Tests subscriptions by the client library with a real relay, and with streams that break in each way. */
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createLive, LiveError, type CommandProgress, type ConnectionsView } from '../../src/clients/live/index.ts';
import { createRuntime, type Handler, type Runtime } from '../../src/clients/runtime/index.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';
import { eventually } from '../kit/patience.ts';

const random = (): number => 0;

async function startClient(
  relay: RealRelay,
  clientId: string,
  prepare: (runtime: Runtime) => void = () => undefined,
): Promise<Runtime> {
  const token = await relay.token('alice', 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'console' });
  prepare(runtime);
  runtime.connect();
  await runtime.ready();
  return runtime;
}

/** Starts a server that answers each request with one of these listeners, in turn; the last one repeats. */
async function startAnswers(...answers: readonly RequestListener[]) {
  let seen = 0;
  const server = createServer((request, response) => {
    answers[Math.min(seen++, answers.length - 1)]?.(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    seen: () => seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

const EVENT = 'event: next\ndata: {"data":{"n":1}}\n\n';
const stream = (text: string): RequestListener => {
  return (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
};
const refusal = (status: number, code: string): RequestListener => {
  const body = JSON.stringify({ errors: [{ message: `refused: ${code}`, extensions: { code } }] });
  return (_request, response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(body);
};
const COMPLETE = stream(`${EVENT}event: complete\ndata:\n\n`);

test('the connections of a user are read, kept up to date, and read again after a gap', async () => {
  await using relay = await startRealRelay();
  await using proxy = await startTcpProxy(relay.url);
  await using first = await startClient(relay, 'first');
  const live = createLive({ url: proxy.url, token: await relay.token('alice', 'invoke'), random });
  const stop = new AbortController();
  const views: ConnectionsView[] = [];
  const statuses: string[] = [];
  const ended = live.connections({
    status: 'CONNECTED',
    signal: stop.signal,
    onChange: (view) => void views.push(view),
    onStatus: (status) => void statuses.push(status),
  });
  const shown = (...ids: readonly string[]): Promise<void> =>
    eventually(() =>
      expect(
        views
          .at(-1)
          ?.connections.map(({ clientId }) => clientId)
          .toSorted(),
      ).toEqual(ids),
    );
  await shown('first');
  expect(views.at(-1)?.complete).toBe(true);
  const second = await startClient(relay, 'second');
  await shown('first', 'second');
  await first.close();
  await shown('second');
  proxy.cut();
  await eventually(() => expect(statuses.at(-1)).not.toBe('live'));
  await second.close();
  await using third = await startClient(relay, 'third');
  proxy.mend();
  await shown('third');
  expect(third.status.state).toBe('connected');
  stop.abort();
  await ended;
});

test('an event that is older than the rows that are read again does not change them', async () => {
  const row = (clientId: string, instanceId: string) => ({ id: clientId, clientId, instanceId, status: 'CONNECTED' });
  const event = (missed: number, connection: object): string =>
    `event: next\ndata: ${JSON.stringify({ data: { connectionEvents: { missed, connection } } })}\n\n`;
  const rows = (...nodes: readonly object[]): string =>
    JSON.stringify({ data: { connections: { nodes, nextCursor: null, completeness: { complete: true } } } });
  const stream = Promise.withResolvers<ServerResponse>();
  const answers = [rows(row('a', 'first')), rows(row('a', 'third'), row('b', 'first'))];
  await using server = await startAnswers(({ url }, response) => {
    if (url === '/graphql/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      return stream.resolve(response);
    }
    // While the rows are read for the first time, `a` becomes `second`, and then `third`, of which no event arrives.
    void stream.promise.then((open) => {
      const news = answers.length === 2 ? event(0, row('a', 'second')) + event(1, row('b', 'first')) : '';
      open.write(news, () => response.setHeader('content-type', 'application/json').end(answers.shift()));
    });
  });
  const live = createLive({ url: server.url, token: 't', random });
  const stop = new AbortController();
  let shown: readonly string[] = [];
  const ended = live.connections({
    signal: stop.signal,
    onStatus: () => undefined,
    onChange: ({ connections }) => (shown = connections.map(({ clientId, instanceId }) => `${clientId} ${instanceId}`)),
  });
  await eventually(() => expect([answers.length, shown]).toEqual([0, ['a third', 'b first']]));
  stop.abort();
  await ended;
});

test('a command is followed from before its admission to its end, with its progress', async () => {
  await using relay = await startRealRelay();
  const followed = Promise.withResolvers<void>();
  const reported = Promise.withResolvers<void>();
  const work: Handler = async (_params, call) => {
    await followed.promise;
    call.progress({ done: 1 });
    await reported.promise;
    return 'worked';
  };
  await using _client = await startClient(relay, 'kiosk', (runtime) => runtime.handle('work', {}, work));
  const token = await relay.token('alice', 'invoke');
  const live = createLive({ url: relay.url, token });
  await using caller = createHttpCaller({ url: relay.url, token });
  const command = { userId: 'alice', clientId: 'kiosk', commandId: 'c-followed' };
  const updates: CommandProgress[] = [];
  const stop = new AbortController();
  const following = live.command(command, {
    signal: stop.signal,
    onUpdate(update) {
      updates.push(update);
      followed.resolve();
      if (update.progress !== undefined) reported.resolve();
    },
  });
  const answer = await caller.invoke(
    { userId: 'alice', clientId: 'kiosk', action: 'work' },
    {},
    { commandId: command.commandId },
  );
  expect(answer).toMatchObject({ outcome: 'completed', result: 'worked' });
  await following;
  expect(updates.map(({ progress }) => progress)).toContainEqual({ done: 1 });
  expect(updates.at(-1)).toMatchObject({ stage: 'terminal', ended: true });
});

test('a refused subscription rejects with its code, and a fresh token is tried once', async () => {
  await using relay = await startRealRelay();
  const never = { onData: () => expect.unreachable() };
  const wrong = createLive({ url: relay.url, token: 'wrong' });
  await expect(wrong.subscribe('subscription { connectionEvents { missed } }', {}, never)).rejects.toMatchObject({
    name: 'LiveError',
    code: 'unauthenticated',
  });
  const right = createLive({ url: relay.url, token: relay.admin });
  await expect(right.subscribe('subscription { nothing }', {}, never)).rejects.toBeInstanceOf(LiveError);
  const tokens = ['expired', relay.admin];
  const renewed = createLive({ url: relay.url, token: () => tokens.shift() ?? '', random });
  const stop = new AbortController();
  const statuses: string[] = [];
  await renewed.subscribe(
    'subscription { connectionEvents { missed } }',
    {},
    {
      signal: stop.signal,
      onData: () => undefined,
      onStatus(status) {
        statuses.push(status);
        if (status === 'live') stop.abort();
      },
    },
  );
  expect(statuses).toEqual(['connecting', 'waiting', 'connecting', 'live']);
  const same = createLive({ url: relay.url, token: () => 'expired', random });
  await expect(same.connections({ onChange: () => undefined })).rejects.toMatchObject({ code: 'unauthenticated' });
});

test.each([
  ['that ends together with its last event', stream(EVENT)],
  ['that is cut in an event', stream(`${EVENT}event: next\ndata: {"da`)],
  ['with an event of 5 MiB', stream(`${EVENT}event: next\ndata: "${'x'.repeat(5 * 2 ** 20)}"\n\n`)],
  ['of a relay that drains', stream(EVENT + 'event: next\ndata: {"errors":[{"extensions":{"code":"draining"}}]}\n\n')],
])('a stream %s is opened again, and the gap is told', async (_what, broken) => {
  await using server = await startAnswers(broken, refusal(503, 'store_unavailable'), COMPLETE);
  const live = createLive({ url: server.url, token: 't', random });
  const told: unknown[] = [];
  await live.subscribe(
    'subscription { n }',
    {},
    {
      onData: (data) => void told.push(data),
      onGap: (since) => void told.push(typeof since),
      onStatus: () => undefined,
    },
  );
  expect(told).toEqual([{ n: 1 }, 'number', { n: 1 }]);
  expect(server.seen()).toBe(3);
});

test('an event that no relay sends breaks the stream', async () => {
  await using server = await startAnswers(stream('event: other\ndata: {}\n\n'), COMPLETE);
  const live = createLive({ url: server.url, token: 't', random });
  let events = 0;
  await live.subscribe('subscription { n }', {}, { onData: () => void events++, onStatus: () => undefined });
  expect([events, server.seen()]).toEqual([1, 2]);
});

test('an answer of no relay ends the subscription, unless it is a fault of a server', async () => {
  const page: RequestListener = (_request, response) => void response.writeHead(404).end('<p>none</p>');
  const fault: RequestListener = (_request, response) => void response.writeHead(502).end('<p>bad gateway</p>');
  await using server = await startAnswers(fault, page);
  const live = createLive({ url: server.url, token: 't', random });
  const handlers = { onData: () => expect.unreachable(), onStatus: () => undefined };
  await expect(live.subscribe('subscription { n }', {}, handlers)).rejects.toMatchObject({ code: 'bad_answer' });
  expect(server.seen()).toBe(2);
});

test('what a handler throws ends the subscription, and no event follows', async () => {
  await using server = await startAnswers(stream(EVENT + EVENT));
  const live = createLive({ url: server.url, token: 't', random });
  let events = 0;
  const subscription = live.subscribe(
    'subscription { n }',
    {},
    {
      onData() {
        events++;
        throw new RangeError('enough');
      },
    },
  );
  await expect(subscription).rejects.toThrow(new RangeError('enough'));
  expect(events).toBe(1);
});

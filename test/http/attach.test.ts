/** Tests a relay inside the HTTP server of another program. */
import { once } from 'node:events';
import { Agent, createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, request as tlsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { attach, type AttachOptions, type Callboard } from '../../src/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { CERTIFICATE } from '../kit/certificates.ts';
import { ADMIN, SECRET } from './kit/http-relay.ts';
import { TOKEN_SECONDS, eventually } from '../kit/patience.ts';

const auth = { adminTokens: [ADMIN], secret: SECRET };
const token = (...scopes: string[]): Promise<string> =>
  signToken({ secret: SECRET, user: 'alice', scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() });

type Program = AsyncDisposable & { readonly server: Server; readonly seen: readonly string[]; readonly url: string };

/** Starts the server of a program, which answers each request with its path. */
async function startProgram(prepare: (server: Server) => void = () => undefined): Promise<Program> {
  const seen: string[] = [];
  const server = createServer(answer(seen));
  prepare(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    server,
    seen,
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

const answer = (seen: string[]): RequestListener => {
  return ({ url = '' }, response) => {
    seen.push(url);
    response.end(`program ${url}`);
  };
};

const attached = (server: Server, options: Partial<AttachOptions> = {}): Promise<Callboard> =>
  attach(server, { basePath: '/relay', config: { auth }, ...options });

const textOf = async (url: string): Promise<string> => (await fetch(url)).text();

test('a relay serves its base path, and the program everything else', async () => {
  await using program = await startProgram();
  await using relay = await attached(program.server);
  const later: string[] = [];
  program.server.on('request', ({ url = '' }: IncomingMessage) => later.push(url));
  expect(relay.url).toBe(`${program.url}/relay`);
  const users = await fetch(`${relay.url}/users`, { headers: { authorization: `Bearer ${ADMIN}` } });
  expect([users.status, await users.json()]).toEqual([200, expect.objectContaining({ items: [] })]);
  expect((await fetch(`${relay.url}/nothing`)).status).toBe(404);
  for (const path of ['/', '/users', '/relayed', '/other?x=/relay/users']) {
    expect(await textOf(program.url + path)).toBe(`program ${path}`);
  }
  expect(program.seen).toEqual(['/', '/users', '/relayed', '/other?x=/relay/users']);
  expect(later).toEqual(program.seen);
});

test('clients connect and callers call through the server of the program', async () => {
  await using program = await startProgram();
  await using relay = await attached(program.server);
  const url = `${relay.url}`;
  await using client = createRuntime({
    url: `${url.replace('http', 'ws')}/connect`,
    token: await token('connect'),
    clientId: 'kiosk',
    clientType: 'console',
  });
  client.handle('echo', {}, ({ text }) => text);
  client.connect();
  await client.ready();
  await using caller = createHttpCaller({ url, token: await token('invoke') });
  const called = await caller.invoke({ userId: 'alice', clientId: 'kiosk', action: 'echo' }, { text: 'hello' });
  expect(called).toMatchObject({ outcome: 'completed', result: 'hello' });
  expect(program.seen).toEqual([]);
});

test('the upgrades of the program reach its listener, and without one they are ordinary requests', async () => {
  const upgrade = { connection: 'upgrade', upgrade: 'websocket' };
  const ask = async (url: string): Promise<string> => {
    const sent = request(url, { headers: upgrade }).end();
    const [response]: IncomingMessage[] = await once(sent, 'response');
    return (await response?.toArray())?.join('') ?? '';
  };
  await using plain = await startProgram();
  await using _relay = await attached(plain.server);
  expect(await ask(`${plain.url}/own`)).toBe('program /own');

  const sockets = new WebSocketServer({ noServer: true });
  await using program = await startProgram();
  await using _other = await attached(program.server);
  program.server.on('upgrade', (incoming, socket, head) => {
    sockets.handleUpgrade(incoming, socket, head, (own) => own.send(`own ${incoming.url}`));
  });
  const own = new WebSocket(`${program.url.replace('http', 'ws')}/own`);
  const [message]: Buffer[] = await once(own, 'message');
  expect(String(message)).toBe('own /own');
  own.close();
  await once(own, 'close');
});

test('the sockets of the program stay open, however many the relay allows', async () => {
  await using program = await startProgram();
  await using relay = await attached(program.server, { config: { auth, unauthenticatedSockets: 1 } });
  const sockets: Socket[] = [];
  for (let i = 0; i < 5; i++) {
    const socket = connect(Number(new URL(program.url).port), '127.0.0.1');
    await once(socket, 'connect');
    sockets.push(socket);
  }
  // Over each socket a request of the relay, and then one of the program.
  for (const path of ['/relay/healthz', '/own']) {
    for (const socket of sockets) {
      socket.write(`GET ${path} HTTP/1.1\r\nhost: here\r\n\r\n`);
      const [bytes]: Buffer[] = await once(socket, 'data');
      expect(String(bytes)).toMatch(/^HTTP\/1.1 200 /);
    }
  }
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false, false, false, false]);
  const metrics = await fetch(`${relay.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN}` } });
  // The request that reads the metrics has a valid token, and no other is in progress.
  expect(await metrics.text()).toMatch(/^callboard_unauthenticated_sockets 0$/m);
  for (const socket of sockets) socket.destroy();
});

test('closing the relay answers its calls and leaves the server as it was', async () => {
  await using program = await startProgram();
  const { server } = program;
  const before = { emit: server.emit, upgrades: Reflect.get(server, 'shouldUpgradeCallback') };
  const relay = await attached(server);
  const url = `${relay.url}`;
  const client = createRuntime({
    url: `${url.replace('http', 'ws')}/connect`,
    token: await token('connect'),
    clientId: 'kiosk',
    clientType: 'console',
    onStatus: () => undefined,
  });
  // The relay is gone by then, so nothing acknowledges the end of the call.
  onTestFinished(() => client.close({ withinMs: 0 }));
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  client.handle('wait', {}, () => {
    started.resolve();
    return ended.promise;
  });
  client.connect();
  await client.ready();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (path: string, body?: string): Promise<{ text: string; socket: Socket }> => {
    const headers = { authorization: `Bearer ${await token('invoke')}`, 'content-type': 'application/json' };
    const sent = request(program.url + path, { agent, headers, method: body ? 'POST' : 'GET' }).end(body);
    const [response]: IncomingMessage[] = await once(sent, 'response');
    if (!response) throw new Error('no response');
    const { socket } = response;
    return { text: (await response.toArray()).join(''), socket };
  };
  const first = await ask('/own');
  const waiting = ask('/relay/connections/alice/kiosk/actions/wait', '{}');
  await started.promise;
  await relay.close();
  expect(JSON.parse((await waiting).text)).toMatchObject({ outcome: 'outcome_unknown' });
  const after = await ask('/relay/users');
  expect(after.text).toBe('program /relay/users');
  expect([after.socket, (await waiting).socket]).toEqual([first.socket, first.socket]);
  expect(server.listening).toBe(true);
  expect({ emit: server.emit, upgrades: Reflect.get(server, 'shouldUpgradeCallback') }).toEqual(before);
  expect(server.listenerCount('upgrade')).toBe(0);
  agent.destroy();
  ended.resolve();
});

test('a server gets a second relay, and closing the first one leaves it there', async () => {
  await using program = await startProgram();
  const first = await attached(program.server, { basePath: '/one' });
  await using second = await attached(program.server, { basePath: '/two' });
  await first.close();
  expect(await textOf(`${program.url}/one/healthz`)).toBe('program /one/healthz');
  expect((await fetch(`${second.url}/healthz`)).headers.get('x-request-id')).toMatch(/./);
});

test('an aborted relay cuts only its own responses', async () => {
  await using program = await startProgram();
  const relay = await attached(program.server);
  const stream = await fetch(`${relay.url}/graphql/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query: 'subscription { connectionEvents { missed } }' }),
  });
  await relay.abort();
  await expect(stream.text()).rejects.toThrow();
  expect(await textOf(`${program.url}/own`)).toBe('program /own');
  await relay.close();
});

test('a relay in a server with TLS has its certificate, and takes its origin for its own', async () => {
  const server = createTlsServer(CERTIFICATE, (_request, response) => void response.end('program'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await using relay = await attach(server, { basePath: '/relay', config: { auth } });
  const url = new URL(`${relay.url}`);
  expect(url.protocol).toBe('https:');
  const statusOf = async (origin: string): Promise<number | undefined> => {
    const headers = { authorization: `Bearer ${ADMIN}`, origin };
    const sent = tlsRequest(`${url}/users`, { ca: CERTIFICATE.cert, agent: false, headers }).end();
    const [response]: IncomingMessage[] = await once(sent, 'response');
    response?.resume();
    return response?.statusCode;
  };
  expect(await statusOf(url.origin)).toBe(200);
  expect(await statusOf(url.origin.replace('https', 'http'))).toBe(403);
  const link = new WebSocket(`${url}/connect`.replace('https', 'wss'), ['callboard.v1'], { ca: CERTIFICATE.cert });
  await once(link, 'open');
  await relay.close();
  await once(link, 'close');
  const sent = tlsRequest(`${url}/users`, { ca: CERTIFICATE.cert, agent: false }).end();
  const [after]: IncomingMessage[] = await once(sent, 'response');
  expect((await after?.toArray())?.join('')).toBe('program');
  server.close();
});

test('a relay has no URL before the server listens, cannot listen itself, and cannot take the root', async () => {
  const server = createServer();
  await using relay = await attached(server);
  expect(relay.url).toBeNull();
  await expect(relay.listen()).rejects.toMatchObject({ code: 'invalid_argument' });
  for (const basePath of ['', '/', 'relay', '/relay/', '/re lay', '/a?b']) {
    await expect(attached(server, { basePath })).rejects.toMatchObject({ code: 'invalid_argument' });
  }
  server.listen(0, '127.0.0.1');
  await eventually(() => expect(relay.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/relay$/));
  server.close();
});

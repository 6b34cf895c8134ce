/** Tests bounds on sockets without a token, and on peers that do not read. */
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../src/core/log.ts';
import { READ_NOTHING_MS } from '../../src/core/limits.ts';
import { takenBytes } from '../../src/http/socket-progress.ts';
import { Sockets, type SocketsOptions } from '../../src/http/sockets.ts';
import { readDescriptorLimit } from '../../src/platform/descriptors.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock } from '../kit/clock.ts';
import { until } from '../relay/kit/test-relay.ts';
import { ask, startHttpRelay, tokenOf, type HttpRelay } from './kit/http-relay.ts';
import { client } from '../gateway/kit/test-gateway.ts';

const opened = new Set<Socket>();
afterEach(() => opened.forEach((socket) => socket.destroy()));

/** Opens a socket that stays open when the other side ends, like that of a hostile peer. */
async function dial(url: string, bytes: string, options: Partial<NetConnectOpts> = {}): Promise<Socket> {
  const port = Number(new URL(url).port);
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, ...options });
  opened.add(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.resume();
  socket.write(bytes);
  return socket;
}

/** Resolves with the value of one of the relay's metrics. */
async function metric({ url }: HttpRelay, name: string): Promise<number> {
  const { text } = await ask(`${url}/metrics`);
  return Number(new RegExp(`^callboard_${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

/** Resolves with whether a client with another address of this machine is still served. */
function healthyElsewhere(url: string): Promise<boolean> {
  return new Promise((done) => {
    const request = get(`${url}/healthz`, { localAddress: '127.0.0.2', agent: false }, (response) => {
      response.resume().on('end', () => done(response.statusCode === 200));
    });
    request.on('error', () => done(false));
  });
}

describe('sockets without a valid token', () => {
  it('are bounded per address; further ones are closed at once, and others are served', async () => {
    await using at = await startHttpRelay({ unauthenticatedSockets: 10 });
    const sockets = await Promise.all(Array.from({ length: 40 }, () => dial(at.url, 'GET /healthz HTTP/1.1\r\nX: ')));
    await until(
      () => sockets.filter((socket) => socket.closed || socket.readableEnded || socket.destroyed).length >= 0,
    );
    expect(await healthyElsewhere(at.url)).toBe(true);
    await expect(ask(`${at.url}/healthz`, { token: null })).rejects.toThrow();
    const [first, ...rest] = sockets.filter((socket) => !socket.readableEnded);
    first?.destroy();
    await until(async () => (await ask(`${at.url}/metrics`).catch(() => null))?.status === 200);
    expect(await metric(at, 'sockets_refused_total{bound="address"}')).toBeGreaterThanOrEqual(30);
    expect(at.lines.filter((line) => line.includes('a connection was refused')).length).toBeLessThanOrEqual(7);
    for (const socket of rest) socket.destroy();
    await until(async () => (await metric(at, 'unauthenticated_sockets')) <= 1);
  });

  it('do not prevent 1,200 unfinished headers from being refused and others from being served', async () => {
    await using at = await startHttpRelay();
    for (let batch = 0; batch < 12; batch++)
      await Promise.all(Array.from({ length: 100 }, () => dial(at.url, 'GET / HTTP/1.1\r\nX: ')));
    expect(await healthyElsewhere(at.url)).toBe(true);
  });

  it('do not count once a valid token was received over them, or their link was welcomed', async () => {
    await using at = await startHttpRelay({ unauthenticatedSockets: 3 });
    const agent = new Agent({ keepAlive: true, maxSockets: 10 });
    const token = await tokenOf('root', 'admin');
    const headers = { authorization: `Bearer ${token}` };
    const held: Promise<number | undefined>[] = [];
    for (let i = 0; i < 6; i++) {
      const answered = new Promise<number | undefined>((resolve, reject) => {
        const request = get(`${at.url}/users`, { agent, headers }, (response) => {
          // The answer is not read to its end, so the socket stays busy with its request.
          resolve(response.statusCode);
        });
        request.on('error', reject);
      });
      held.push(answered);
      expect(await answered).toBe(200);
    }
    const peers: Parameters<typeof client>[0]['peers'] = [];
    const port = Number(new URL(at.linkUrl).port);
    for (let i = 0; i < 6; i++)
      await client({ port, peers }, { token: await tokenOf('alice', 'connect'), client_id: `c${i}` });
    expect((await at.ask('/healthz', { token: null })).status).toBe(200);
    for (const peer of peers) peer.ws.terminate();
    agent.destroy();
  });

  it('are not bounded by address behind a trusted proxy, whose address they share', async () => {
    await using at = await startHttpRelay({ unauthenticatedSockets: 3, trustProxy: true });
    await Promise.all(Array.from({ length: 10 }, () => dial(at.url, 'GET /healthz HTTP/1.1\r\nX: ')));
    expect((await at.ask('/healthz', { token: null })).status).toBe(200);
  });
});

describe('a socket after its last answer', () => {
  it.each([
    ['what is no request', 'hello\r\n\r\n', 400],
    ['a refused upgrade', UPGRADE('x'), 400],
    ['a tunnel', 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    [
      'a body that is too large',
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n',
      413,
    ],
  ])('is closed a second later, whether its peer closes or not: %s', async (_what, bytes, status) => {
    const clock = new FakeClock(Date.now());
    await using at = await startHttpRelay({}, { clock });
    const socket = await dial(at.url, bytes);
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    await once(socket, 'end');
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    await clock.advance(1_000);
    await until(async () => (await metric(at, 'unauthenticated_sockets')) <= 1);
    expect(socket.destroyed).toBe(false);
  });
});

function UPGRADE(protocol: string): string {
  const lines = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
  const key = ['Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', `Sec-WebSocket-Protocol: ${protocol}`];
  return ['GET /connect HTTP/1.1', ...lines, ...key, '', ''].join('\r\n');
}

describe('a peer that does not read its answers', () => {
  it('is cut after fifteen seconds', async () => {
    const clock = new FakeClock(Date.now());
    await using at = await startHttpRelay({}, { clock });
    const request = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
    const socket = await dial(at.url, request.repeat(400));
    socket.pause();
    // The system accepts the answers step by step. The timeout starts when it accepts no more.
    await until(async () => {
      await clock.advance(1_000);
      return (await metric(at, 'sockets_cut_total')) === 1;
    });
    expect((await at.ask('/healthz', { token: null })).status).toBe(200);
  });
});

type Pair = AsyncDisposable & { readonly near: Socket; readonly far: Socket; readonly clock: FakeClock };

/**
 * Opens a socket and returns its two ends. The near end is watched, and holds more data for the far end than the system
 * accepts.
 */
async function pair(options: Partial<SocketsOptions> = {}): Promise<Pair> {
  const clock = new FakeClock();
  const sockets = new Sockets({
    ...{ clock, log: silentLog, metrics: createMetrics(), perAddress: 10, inAll: 10 },
    ...options,
  });
  const server: Server = createServer((socket) => sockets.accepted(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const accepted = once(server, 'connection');
  const far = connect(address.port, '127.0.0.1');
  far.pause();
  const [near]: Socket[] = await accepted;
  if (!near) throw new Error('nothing was accepted');
  for (const socket of [near, far]) socket.on('error', () => {});
  near.write(Buffer.alloc(64 * 1024 * 1024));
  return {
    ...{ near, far, clock },
    async [Symbol.asyncDispose]() {
      sockets.close();
      near.destroy();
      far.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Waits until the system takes no more data of the near end. */
async function untilStuck({ near }: Pair): Promise<void> {
  let before = -1;
  await until(() => {
    const now = takenBytes(near);
    const stuck = now === before && now > 0;
    before = now;
    return stuck;
  });
}

describe('the watch on readers', () => {
  it('cuts a reader that reads nothing, and not earlier', async () => {
    await using at = await pair();
    await untilStuck(at);
    await at.clock.advance(READ_NOTHING_MS);
    expect(at.near.destroyed).toBe(false);
    await at.clock.advance(2_000);
    expect(at.near.destroyed).toBe(true);
  });

  it('keeps a slow reader, however slow, also of a single write', async () => {
    await using at = await pair();
    const before = takenBytes(at.near);
    for (let round = 0; round < 5; round++) {
      const taken = takenBytes(at.near);
      at.far.resume();
      await until(() => takenBytes(at.near) > taken);
      at.far.pause();
      await at.clock.advance(READ_NOTHING_MS - 2_000);
      expect(at.near.destroyed).toBe(false);
    }
    expect(takenBytes(at.near)).toBeGreaterThan(before);
    expect(at.near.writableLength).toBeGreaterThan(0);
  });
});

it('the limit of descriptors is read from Linux', () => {
  const text =
    'Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 524288               files     \n';
  expect(readDescriptorLimit(text)).toBe(1024);
  expect(readDescriptorLimit(text.replace('1024 ', 'unlimited '))).toBeNull();
  expect(readDescriptorLimit('')).toBeNull();
});

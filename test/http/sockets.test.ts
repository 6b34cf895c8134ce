/** Tests bounds on sockets and on requests in progress, and on peers that do not read. */
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, createServer, Socket, type NetConnectOpts, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { RESERVE_PART } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { silentLog } from '../../src/core/ports.ts';
import { READ_NOTHING_MS } from '../../src/core/limits.ts';
import { takenBytes } from '../../src/http/unread-bytes.ts';
import { Sockets, type SocketsOptions } from '../../src/http/sockets.ts';
import { readDescriptorLimit, socketRoom, withinDescriptors } from '../../src/platform/open-files.ts';
import { systemLoop } from '../../src/platform/system.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock } from '../kit/clock.ts';
import { until } from '../relay/kit/test-relay.ts';
import { ask, postJson, startHttpRelay, tokenOf, type HttpRelay } from './kit/http-relay.ts';
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
  it('are bounded per address: a new one evicts another one of its address, and others are served', async () => {
    await using at = await startHttpRelay({ unauthenticatedSockets: 10 });
    const sockets = await Promise.all(Array.from({ length: 40 }, () => dial(at.url, 'GET /healthz HTTP/1.1\r\nX: ')));
    expect(await healthyElsewhere(at.url)).toBe(true);
    expect((await ask(`${at.url}/healthz`, { token: null })).status).toBe(200);
    expect(await metric(at, 'sockets_refused_total{bound="address"}')).toBeGreaterThanOrEqual(30);
    expect(at.lines.filter((line) => line.includes('a connection was closed: too many')).length).toBeLessThanOrEqual(7);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await metric(at, 'unauthenticated_sockets')) <= 1);
  });

  it('do not prevent a valid token of the same address from being served, however many are idle', async () => {
    await using at = await startHttpRelay();
    await Promise.all(Array.from({ length: 300 }, () => dial(at.url, '')));
    const answers = await Promise.all(Array.from({ length: 120 }, () => ask(`${at.url}/users`).catch(() => null)));
    expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => 200));
    // An unfinished head is evicted before a newer socket, too.
    await Promise.all(Array.from({ length: 300 }, () => dial(at.url, 'GET / HTTP/1.1\r\nX: ')));
    const later = await Promise.all(Array.from({ length: 120 }, () => ask(`${at.url}/users`).catch(() => null)));
    expect(later.map((answer) => answer?.status)).toEqual(later.map(() => 200));
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
    ...{ clock, loop: systemLoop, log: silentLog, metrics: createMetrics(), shares: createShares() },
    ...{ perAddress: 10, inAll: 10 },
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

/** A relay's sockets without a relay: sockets are given to it as plain objects. */
function stage(options: Partial<SocketsOptions> = {}) {
  const clock = new FakeClock();
  const shares = createShares({ sockets: { guarantee: 2, total: 8 } });
  const lines: string[] = [];
  const later: (() => void)[] = [];
  const log = { ...silentLog, warn: (_: unknown, message?: string) => void lines.push(message ?? '') };
  const sockets = new Sockets({
    ...{ clock, log, metrics: createMetrics(), shares, perAddress: 3, inAll: 5 },
    loop: { ...systemLoop, afterOthers: (run) => void later.push(run) },
    ...options,
  });
  /** Lets the event loop go on for one turn. */
  const turn = (): void => later.splice(0).forEach((run) => run());
  const accept = (address = '10.0.0.1'): TestSocket => {
    const socket = new TestSocket(address);
    sockets.accepted(socket);
    return socket;
  };
  /** Accepts a socket, and lets the loop go on until the relay has evicted what exceeds its bounds. */
  const open = (address?: string): TestSocket => {
    const socket = accept(address);
    turn();
    turn();
    return socket;
  };
  return { clock, shares, sockets, accept, open, turn, lines };
}

class TestSocket extends Socket {
  /** The number of bytes that the peer has sent. */
  sent = 0;

  constructor(address: string) {
    super();
    Object.defineProperty(this, 'remoteAddress', { value: address });
    Object.defineProperty(this, 'bytesRead', { get: () => this.sent });
  }
}

describe('a new socket', () => {
  it('evicts the one of its address that has been idle for longest, and spares heads and requests that arrive', async () => {
    const { clock, sockets, open } = stage();
    const [sending, asking, idle] = [open(), open(), open()];
    sending.sent = 5;
    asking.sent = 50;
    sockets.began(asking);
    const elsewhere = open('10.0.0.2');
    await clock.advance(4_000);
    const fresh = open();
    expect([sending, asking, idle, elsewhere, fresh].map((socket) => socket.destroyed)).toEqual([
      ...[false, false, true, false, false],
    ]);
    // Without an idle one, the socket that was accepted first goes, whatever it has sent since.
    sending.sent = 6;
    open();
    expect([sending.destroyed, asking.destroyed, fresh.destroyed]).toEqual([true, false, false]);
    expect(sockets.unauthenticated).toBe(4);
  });

  it('evicts none whose request arrives in the turn after that in which many were accepted, up to twice the bound', () => {
    const { sockets, accept, turn } = stage({ perAddress: 3, inAll: 100 });
    const honest = accept();
    const together = [1, 2, 3, 4].map(() => accept());
    turn();
    expect([honest, ...together].every((socket) => !socket.destroyed)).toBe(true);
    sockets.authenticated(honest, { kind: 'admin', name: 'root', expiresAt: null });
    turn();
    expect(honest.destroyed).toBe(false);
    expect(together.map((socket) => socket.destroyed)).toEqual([true, false, false, false]);
    const more = [1, 2, 3, 4].map(() => accept());
    expect(together.map((socket) => socket.destroyed)).toEqual([true, true, false, false]);
    turn();
    turn();
    expect(more.map((socket) => socket.destroyed)).toEqual([true, false, false, false]);
    expect(sockets.unauthenticated).toBe(3);
  });

  it('evicts no newer one before all older ones, however fast they come and whatever they send', async () => {
    const { clock, sockets, open } = stage({ perAddress: 20, inAll: 100 });
    const hostile: TestSocket[] = [];
    const flood = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const socket = open();
        // Some send nothing, some a head byte by byte, some whole requests one after the other.
        socket.sent = i % 3;
        if (i % 3 === 2) sockets.began(socket);
        hostile.push(socket);
      }
      for (const [i, socket] of hostile.entries()) if (i % 3 > 0) socket.sent++;
    };
    flood(50);
    await clock.advance(1_000);
    const honest = open();
    flood(19);
    expect(honest.destroyed).toBe(false);
    flood(1);
    expect(honest.destroyed).toBe(true);
  });

  it('counts as idle again after a request, from its end', async () => {
    const { clock, sockets, open } = stage();
    const [first, second] = [open(), open()];
    await clock.advance(4_000);
    first.sent = 60;
    sockets.began(first);
    sockets.ended(first);
    await clock.advance(1_000);
    open();
    open();
    expect([first.destroyed, second.destroyed]).toEqual([false, true]);
  });
});

describe('the share of sockets', () => {
  const alice = { kind: 'user', userId: 'alice', scopes: new Set<never>(), expiresAt: null } as const;
  const bob = { ...alice, userId: 'bob' };

  it('counts a socket for the holder of the last valid token, and gives it back when it closes', async () => {
    const { shares, sockets, open } = stage();
    const socket = open();
    sockets.authenticated(socket, alice);
    sockets.authenticated(socket, alice);
    expect([shares.of('alice').held('sockets'), sockets.unauthenticated]).toEqual([1, 0]);
    sockets.authenticated(socket, bob);
    expect([shares.of('alice').held('sockets'), shares.of('bob').held('sockets')]).toEqual([0, 1]);
    socket.destroy();
    await once(socket, 'close');
    expect(shares.used('sockets')).toBe(0);
  });

  it('refuses a holder beyond it, logs that, and leaves the socket to its holder before', () => {
    const { shares, sockets, open, lines } = stage();
    for (let i = 0; i < 6; i++) sockets.authenticated(open(), alice);
    const refused = open();
    const error = expect.objectContaining({
      code: 'share_exceeded',
      details: { share: 'sockets', retryAfterMs: 5_000 },
    });
    expect(() => sockets.authenticated(refused, alice)).toThrow(error);
    expect([shares.used('sockets'), sockets.unauthenticated]).toEqual([6, 1]);
    expect(lines).toEqual(['a connection was refused: its user holds more than the share']);
    sockets.authenticated(refused, bob);
    expect(() => sockets.authenticated(refused, alice)).toThrow(error);
    expect(shares.of('bob').held('sockets')).toBe(1);
  });

  it('does not count the socket of a link twice', () => {
    const { shares, sockets, open } = stage();
    const socket = open();
    sockets.authenticated(socket, alice);
    sockets.upgraded(socket);
    expect(shares.used('sockets')).toBe(1);
    sockets.released(socket);
    expect([shares.used('sockets'), sockets.unauthenticated]).toEqual([0, 0]);
  });

  it('holds over HTTP and links: others and administrators are served while one token holds all it may', async () => {
    await using at = await startHttpRelay({ shares: { sockets: { guarantee: 4, total: 16 } } });
    const request = `GET /users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await tokenOf('mallory')}\r\n\r\n`;
    const statuses: string[] = [];
    for (let i = 0; i < 20; i++) {
      const socket = await dial(at.url, request);
      const [answer] = await once(socket, 'data');
      statuses.push(String(answer).slice(9, 12));
    }
    expect(statuses).toEqual([...Array.from({ length: 12 }, () => '403'), ...Array.from({ length: 8 }, () => '429')]);
    const refused = await ask(`${at.url}/users`, { token: await tokenOf('mallory') });
    expect([refused.status, refused.json?.['code'], refused.json?.['share'], refused.headers.connection]).toEqual([
      ...[429, 'share_exceeded', 'sockets', 'close'],
    ]);
    expect((await at.ask('/healthz', { token: null })).status).toBe(200);
    expect((await ask(`${at.url}/users`)).status).toBe(200);
    const peers: Parameters<typeof client>[0]['peers'] = [];
    const port = Number(new URL(at.url).port);
    await client({ port, peers }, { token: await tokenOf('alice', 'connect'), client_id: 'c1' });
    for (const peer of peers) peer.ws.terminate();
  });
});

it('the sockets of a process stay within its limit of descriptors, and leave some for other files', () => {
  for (const limit of [64, 256, 1_024, 4_096, 20_000, 1_048_576]) {
    const { unauthenticated, total } = socketRoom(limit);
    const most = unauthenticated + total + 2 * Math.floor(total * RESERVE_PART);
    expect(most).toBeLessThanOrEqual(Math.max(limit / 2, limit - Math.max(64, limit / 16)));
    expect(Math.min(unauthenticated, total)).toBeGreaterThan(0);
  }
  expect(withinDescriptors({ guarantee: 2_000, total: 24_000 }, 4_096)).toEqual({ guarantee: 2_000, total: 2_986 });
  expect(withinDescriptors({ guarantee: 2_000, total: 24_000 }, 256)).toEqual({ guarantee: 149, total: 149 });
  expect(withinDescriptors({ guarantee: 2_000, total: 24_000 }, null)).toEqual({ guarantee: 2_000, total: 24_000 });
});

describe('the share of requests', () => {
  it('bounds requests in progress, without calls that wait and event streams, and is given back', async () => {
    const bound = { guarantee: 2, total: 4 };
    await using at = await startHttpRelay({ shares: { requests: bound } });
    const token = await tokenOf('alice', 'connect', 'invoke', 'host');
    const used = (share: string): Promise<number> => metric(at, `share_used{share="${share}"}`);
    const path = '/connections/alice/tab/actions/open';
    // Calls that wait for their client do not count.
    const aborts = new AbortController();
    const init = { method: 'POST', signal: aborts.signal, body: '{"connect_within_ms":60000}' };
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    for (let i = 0; i < 6; i++) void fetch(`${at.url}${path}`, { ...init, headers }).catch(() => {});
    await until(async () => (await used('waits')) === 6);
    expect(await used('requests')).toBe(0);
    // Bodies that do not end do.
    const head = ['POST /graphql HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`];
    const unfinished = [...head, 'Content-Type: application/json', 'Content-Length: 9', '', ''].join('\r\n');
    const slow = await Promise.all(Array.from({ length: 3 }, () => dial(at.url, unfinished)));
    await until(async () => (await used('requests')) === 3);
    const refused = await at.ask('/graphql', postJson({ query: '{ __typename }' }, { token }));
    expect([refused.status, refused.headers.connection]).toEqual([429, 'close']);
    expect(refused.text).toContain('"share":"requests"');
    expect((await at.ask('/graphql', postJson({ query: '{ __typename }' }))).status).toBe(200);
    for (const socket of slow) socket.destroy();
    await until(async () => (await used('requests')) === 0);
    expect((await at.ask('/graphql', postJson({ query: '{ __typename }' }, { token }))).status).toBe(200);
    aborts.abort();
  });
});

it('the limit of descriptors is read from Linux', () => {
  const text =
    'Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 524288               files     \n';
  expect(readDescriptorLimit(text)).toBe(1024);
  expect(readDescriptorLimit(text.replace('1024 ', 'unlimited '))).toBeNull();
  expect(readDescriptorLimit('')).toBeNull();
});

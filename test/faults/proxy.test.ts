/** Tests the proxy of the fault runs: each fault that it can cause. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { startProxy } from '../../faults/outages/processes/proxy.ts';

/** Starts a server that echoes each line, and records the lines that it received. */
async function startEcho() {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      received.push(String(bytes));
      socket.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ended.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { received, sockets, port: (server.address() as AddressInfo).port };
}

const ended: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

async function setUp() {
  const echo = await startEcho();
  const proxy = await startProxy(() => [echo.port]);
  ended.push(async () => proxy[Symbol.asyncDispose]());
  const open = async (): Promise<Socket> => {
    const socket = connect(proxy.port, '127.0.0.1');
    socket.on('error', () => {});
    ended.push(async () => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  return { echo, proxy, open, near: await open() };
}

async function echoed(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  let got = '';
  while (got.length < text.length) got += String((await once(socket, 'data'))[0]);
  return got;
}

/** Resolves when the socket has closed. `once` of node:events would reject on an `error` event. */
const closed = (socket: Socket): Promise<unknown> => new Promise((done) => socket.once('close', done));

describe('the fault proxy', () => {
  test('passes data on, both ways', async () => {
    const { near, proxy } = await setUp();
    const text = 'x'.repeat(300_000);
    expect(await echoed(near, text)).toBe(text);
    expect(proxy.size).toBe(1);
  });

  test('connects to the first target that accepts', async () => {
    const echo = await startEcho();
    await using proxy = await startProxy(() => [1, echo.port]);
    const near = connect(proxy.port, '127.0.0.1');
    expect(await echoed(near, 'hello')).toBe('hello');
    near.destroy();
  });

  test('loses one reply with its connection, after the request arrived', async () => {
    const { near, echo, proxy, open } = await setUp();
    proxy.dropReply();
    const answered: unknown[] = [];
    near.on('data', (bytes) => answered.push(bytes));
    near.write('ask');
    await closed(near);
    expect([echo.received, answered, proxy.dropped]).toEqual([['ask'], [], 1]);
    expect(await echoed(await open(), 'again')).toBe('again');
  });

  test('swallows data in a black hole, permanently, and lets later connections work', async () => {
    const { near, echo, proxy, open } = await setUp();
    await echoed(near, 'before');
    proxy.set({ kind: 'black-hole' });
    near.write('lost');
    const other = await open();
    other.write('lost too');
    await expect.poll(() => proxy.size).toBe(2);
    proxy.set({ kind: 'pass' });
    expect(await echoed(await open(), 'after')).toBe('after');
    expect(echo.received).toEqual(['before', 'after']);
    expect([near.destroyed, other.destroyed]).toEqual([false, false]);
  });

  test('refuses new connections and keeps the existing ones', async () => {
    const { near, proxy, open } = await setUp();
    await echoed(near, 'before');
    proxy.set({ kind: 'refuse' });
    await closed(await open());
    expect(await echoed(near, 'still')).toBe('still');
  });

  test('breaks connections with RST at both ends', async () => {
    const { near, echo, proxy } = await setUp();
    await echoed(near, 'before');
    const [far] = echo.sockets;
    const errors: unknown[] = [];
    near.on('error', (error) => errors.push('code' in error ? error.code : error));
    const gone = far && closed(far);
    proxy.reset();
    await Promise.all([closed(near), gone]);
    expect(errors).toEqual(['ECONNRESET']);
    expect(proxy.size).toBe(0);
  });

  test('keeps the near end open when only the far one is cut', async () => {
    const { near, echo, proxy } = await setUp();
    await echoed(near, 'before');
    const [far] = echo.sockets;
    proxy.halfOpen();
    if (far && !far.destroyed) await closed(far);
    near.write('into the void');
    await new Promise(setImmediate);
    expect(near.destroyed).toBe(false);
    expect(echo.received).toEqual(['before']);
  });

  test('drops what the far end sends, and keeps the near end open when the far one closes', async () => {
    const { near, echo, proxy, open } = await setUp();
    await echoed(near, 'before');
    const [far] = echo.sockets;
    const heard: unknown[] = [];
    near.on('data', (bytes) => heard.push(bytes));
    const breakNear = proxy.swallow('down');
    near.write('unheard');
    await expect.poll(() => echo.received).toEqual(['before', 'unheard']);
    expect(await echoed(await open(), 'heard')).toBe('heard');
    expect([near.destroyed, heard]).toEqual([false, []]);
    breakNear();
    await closed(near);
    expect(far?.destroyed).toBe(false);
  });

  test('drops what the near end sends, and passes what the far one does', async () => {
    const { near, echo, proxy } = await setUp();
    await echoed(near, 'before');
    proxy.swallow('up');
    near.write('lost');
    for (const far of echo.sockets) far.write('told');
    expect(String((await once(near, 'data'))[0])).toBe('told');
    expect(echo.received).toEqual(['before']);
  });

  test('keeps back what follows the first answer, and sends it when the near end is gone', async () => {
    const { echo, proxy, open } = await setUp();
    const held = proxy.holdBack();
    const near = await open();
    await echoed(near, 'handshake');
    near.write('hello');
    await expect.poll(() => held.size).toBe(1);
    const late = held.breakNear();
    await closed(near);
    expect(await echoed(await open(), 'another')).toBe('another');
    expect(echo.received).toEqual(['handshake', 'another']);
    late.release();
    await expect.poll(() => echo.received).toEqual(['handshake', 'another', 'hello']);
    late.close();
    await expect.poll(() => echo.sockets.size - [...echo.sockets].filter(({ destroyed }) => destroyed).length).toBe(2);
  });

  test('breaks the near end only, and the far end later', async () => {
    const { near, echo, proxy } = await setUp();
    await echoed(near, 'before');
    const [far] = echo.sockets;
    const tell = proxy.breakNear();
    await closed(near);
    expect(far?.destroyed).toBe(false);
    tell();
    if (far && !far.destroyed) await closed(far);
    expect(proxy.size).toBe(0);
  });

  test('splits and delays without loss or reordering', async () => {
    const { near, echo, proxy } = await setUp();
    proxy.set({ kind: 'slice', bytes: 1 });
    const text = Array.from({ length: 500 }, (_, n) => String(n)).join(',');
    expect(await echoed(near, text)).toBe(text);
    proxy.set({ kind: 'delay', ms: 50 });
    const before = performance.now();
    expect(await echoed(near, 'late')).toBe('late');
    expect(performance.now() - before).toBeGreaterThan(90);
    expect(echo.received.join('')).toBe(`${text}late`);
  });

  test('keeps the order of delayed data when the delay ends', async () => {
    const { near, echo, proxy } = await setUp();
    proxy.set({ kind: 'delay', ms: 60 });
    near.write('first ');
    // Waits until the data has reached the proxy.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    proxy.set({ kind: 'pass' });
    near.write('then ');
    await expect.poll(() => echo.received.join('')).toBe('first then ');
  });
});

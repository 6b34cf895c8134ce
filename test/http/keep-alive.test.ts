/** Tests connections that are kept open between requests. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createHttpServer, type HttpServer } from '../../src/http/server.ts';
import { answering } from './kit/handler.ts';

const KEEP_ALIVE = { keepAliveMs: 500, bufferMs: 0 };
const STALL_MS = 2 * KEEP_ALIVE.keepAliveMs;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** The content of the answers does not matter here. */
const HANDLER = answering((response) => void response.end('ok'));

let server: HttpServer;
let socket: Socket;
let errors: unknown[];

beforeEach(async () => {
  server = createHttpServer(HANDLER, KEEP_ALIVE);
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  errors = [];
  socket = connect(port, '127.0.0.1').on('error', (error) => void errors.push(error));
  socket.write(REQUEST);
});
afterEach(async () => {
  socket.destroy();
  await server.close();
});

/** Blocks the whole process, as a stalled machine would. */
function stall(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
}

it('answers a request that arrived while the process stalled beyond the keep-alive time', async () => {
  // The request and the stall happen in one turn of the event loop, because a machine under load may take long between
  // two turns.
  socket.once('data', () => {
    socket.write(REQUEST);
    stall();
  });
  await once(socket, 'data');
  const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  expect(String(answer)).toMatch(/^HTTP\/1.1 200 OK/);
});

it('closes a connection that stays idle beyond the keep-alive time', async () => {
  await once(socket.resume(), 'close');
  expect(errors).toEqual([]);
});

/** Tests that a server that closes first writes the answers that wait for their record. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { createHttpServer } from '../../src/http/server.ts';
import { answering } from './kit/handler.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** Starts a server that holds everything back until `release`, and sends it one request, which is answered at once. */
async function holdAnswer() {
  const held: (() => void)[] = [];
  let isRecorded = false;
  const onRecord = (run: () => void): void => (isRecorded ? run() : void held.push(run));
  let answered = (): void => {};
  const isAnswered = new Promise<void>((resolve) => (answered = resolve));
  const handler = answering((response) => {
    response.write('first, ');
    response.end('last');
    answered();
  });
  const server = createHttpServer(handler, { onRecord });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  socket.write(REQUEST);
  await isAnswered;
  const release = (): void => {
    isRecorded = true;
    for (const run of held.splice(0)) run();
  };
  return { server, socket, release };
}

it('writes an answer that was recorded while the server closes', async () => {
  const { server, socket, release } = await holdAnswer();
  const received = text(socket);
  const closed = server.close();
  release();
  expect(await received).toMatch(/first, [^]*last\r\n0\r\n\r\n$/);
  await closed;
});

it('closes after its bound if an answer is never recorded', async () => {
  const { server, socket } = await holdAnswer();
  const received = text(socket);
  await server.close();
  expect(await received).toBe('');
});

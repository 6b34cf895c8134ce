/** Runs a relay made with Socket.IO, a peer of the call suites. */
import { createServer } from 'node:http';
import { Server, type Socket } from 'socket.io';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';

/**
 * Starts the relay. It forwards a caller's `call` to the registered client, and returns the client's acknowledgement.
 */
export async function start(): Promise<Started> {
  const server = createServer();
  const io = new Server(server, { transports: ['websocket'], perMessageDeflate: false, serveClient: false });
  let client: Socket | null = null;
  io.on('connection', (socket) => {
    socket.on('register', (done: () => void) => {
      client = socket;
      done();
    });
    socket.on('call', async (params: unknown, done: (result: unknown) => void) =>
      done(await client?.emitWithAck('rpc', params)),
    );
  });
  return { port: await listen(server) };
}

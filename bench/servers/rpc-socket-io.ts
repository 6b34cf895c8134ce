import { createServer } from 'node:http';
import { Server, type Socket } from 'socket.io';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';

/** A caller's `call` goes to the client that registered, and its acknowledgement back. */
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

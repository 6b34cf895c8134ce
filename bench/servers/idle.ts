/**
 * Accepts the WebSocket connections of the memory suite and keeps them open. In the `mode` `raw`, it only upgrades the
 * connection. In `ws`, it uses the package `ws` without compression. In `socket.io`, it uses Socket.IO.
 */
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { Server } from 'socket.io';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';

const OPTIONS = z.object({ mode: z.enum(['raw', 'ws', 'socket.io']) });
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';
/** A ping interval longer than any run, in milliseconds, because the readers answer no pings. */
const NEVER_MS = 600_000;

export async function start(given: unknown): Promise<Started> {
  const { mode } = OPTIONS.parse(given);
  const server = createServer();
  if (mode === 'raw') {
    const kept = new Set<Duplex>();
    server.on('upgrade', (_, socket) => {
      socket.write(SWITCHING);
      socket.on('data', () => {});
      socket.on('error', () => {});
      kept.add(socket);
    });
  } else if (mode === 'ws') {
    const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 1 << 20 });
    server.on('upgrade', (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (link) => {
        link.on('message', () => {});
        link.on('close', () => {});
        link.on('error', () => {});
        link.send('hello');
      }),
    );
  } else {
    const options = { pingInterval: NEVER_MS, pingTimeout: NEVER_MS, serveClient: false } as const;
    const io = new Server(server, { transports: ['websocket'], perMessageDeflate: false, ...options });
    io.on('connection', (socket) => void socket.on('rpc', () => {}));
  }
  return { port: await listen(server) };
}

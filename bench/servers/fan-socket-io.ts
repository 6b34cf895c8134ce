/** Sends the events of the fan-out suite with Socket.IO, a peer of the relay, over WebSocket only. */
import { createServer } from 'node:http';
import { Server } from 'socket.io';
import type { Started } from '../lib/child.ts';
import type { FanEvent } from '../lib/fan-event.ts';
import { listen } from '../lib/listen.ts';
import { publishes } from './fan-publish.ts';

/** A ping interval longer than any run, in milliseconds, because the readers answer no pings. */
const NEVER_MS = 600_000;

export async function start(): Promise<Started> {
  const server = createServer((request, response) => void publishes(request, response, publish));
  const io = new Server(server, {
    transports: ['websocket'],
    perMessageDeflate: false,
    pingInterval: NEVER_MS,
    pingTimeout: NEVER_MS,
    serveClient: false,
  });
  const publish = (events: readonly FanEvent[]): void => events.forEach((event) => io.emit('siteEvents', event));
  return { port: await listen(server) };
}

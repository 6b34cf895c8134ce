/**
 * A server for the limit of the fan-out suite, which does only what Node must do. It writes one chunk to each socket:
 * per event (`mode` empty), or per turn of the event loop (`merged`).
 */
import type { Socket } from 'node:net';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import type { FanEvent } from '../lib/fan-event.ts';
import { listen } from '../lib/listen.ts';
import { publishes } from './fan-publish.ts';

const OPTIONS = z.object({ mode: z.enum(['', 'merged']).default('') });

export async function start(given: unknown): Promise<Started> {
  const { mode } = OPTIONS.parse(given);
  const members = new Set<Socket>();
  const write = (chunk: Buffer): void => members.forEach((member) => void member.write(chunk));
  const publish = (events: readonly FanEvent[]): void => {
    const frames = events.map(frameOf);
    for (const frame of mode === 'merged' ? [Buffer.concat(frames)] : frames) write(chunkOf(frame));
  };
  const port = await listen((request, response) => {
    if (publishes(request, response, publish)) return;
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.write(':\n\n');
    const { socket } = request;
    members.add(socket);
    socket.on('close', () => members.delete(socket));
  });
  return { port };
}

function frameOf(event: FanEvent): Buffer {
  return Buffer.from(`event: next\ndata: ${JSON.stringify({ data: { siteEvents: event } })}\n\n`);
}

function chunkOf(frame: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${frame.length.toString(16)}\r\n`), frame, Buffer.from('\r\n')]);
}

/** Holds connected clients that send hello and answer pings, and otherwise do nothing. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';

const CLIENT = z.object({ token: z.string(), clientId: z.string(), instanceId: z.string(), payload: z.string() });
const OPTIONS = z.object({ link: z.string(), clients: z.array(CLIENT) });

/**
 * The maximum number of connections that are opened at the same time. The relay's listen backlog then never overflows.
 */
const AT_ONCE = 64;

export async function start(): Promise<Started> {
  const open: WebSocket[] = [];
  const connect = async (given: unknown): Promise<number> => {
    const { link, clients } = OPTIONS.parse(given);
    for (let i = 0; i < clients.length; i += AT_ONCE)
      open.push(...(await Promise.all(clients.slice(i, i + AT_ONCE).map((client) => opened(link, client)))));
    return open.length;
  };
  return { acts: { connect } };
}

async function opened(link: string, client: z.infer<typeof CLIENT>): Promise<WebSocket> {
  const socket = new WebSocket(link, 'callboard.v1', { perMessageDeflate: false });
  await once(socket, 'open');
  const { token, clientId: client_id, instanceId: instance_id, payload } = client;
  socket.send(
    `${JSON.stringify({ type: 'hello', token, client_id, instance_id, client_type: 'console' })}\n${payload}`,
  );
  const [first] = (await once(socket, 'message')) as [Buffer];
  if (!first.toString().startsWith('{"type":"welcome"'))
    throw new Error(`The relay said ${first.toString().slice(0, 200)}`);
  socket.on('message', (data: Buffer) => {
    if (data.toString().startsWith('{"type":"ping"')) socket.send('{"type":"pong"}');
  });
  return socket;
}

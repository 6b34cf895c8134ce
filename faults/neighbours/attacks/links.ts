/** Opens links for attacks, and floods them with frames. */
import { WebSocket } from 'ws';
import { SUBPROTOCOL } from '../../../src/protocol/frame.ts';
import { freshToken, HOSTILE, linkUrl, type Site } from '../site.ts';
import type { AttackContext } from './attack.ts';

export type Hello = {
  readonly clientId?: string;
  readonly clientType?: 'web' | 'browser';
  readonly payload?: string;
  readonly token?: string;
};

/**
 * Opens a bare link of the hostile user, which only answers pings. Resolves after the welcome; rejects when the relay
 * refuses the link.
 */
export async function openLink(site: Site, n: number, hello: Hello = {}): Promise<WebSocket> {
  const { clientId, clientType = 'web', payload, token } = hello;
  const client = clientId !== undefined && {
    client_id: clientId,
    instance_id: `${clientId}-${n}`,
    client_type: clientType,
  };
  const shown = token ?? (await freshToken(HOSTILE));
  // The socket may open before a token is signed, so the token comes first.
  const socket = new WebSocket(linkUrl(site, n), SUBPROTOCOL, { perMessageDeflate: false });
  const header = JSON.stringify({ type: 'hello', token: shown, ...client });
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  socket.on('open', () => socket.send(payload === undefined ? header : `${header}\n${payload}`));
  socket.on('message', (data) => {
    const text = String(data);
    if (text.startsWith('{"type":"ping"')) socket.send('{"type":"pong"}');
    else if (text.startsWith('{"type":"welcome"')) resolve(socket);
    else if (text.startsWith('{"type":"refused"')) reject(new Error(text));
  });
  socket.on('error', reject);
  socket.on('close', (code, reason) => reject(new Error(`closed: ${code} ${String(reason)}`)));
  return promise;
}

/** Sends a frame and resolves when it has left this process. */
async function sendPaced(socket: WebSocket, text: string): Promise<void> {
  if (socket.readyState !== WebSocket.OPEN) throw new Error('closed');
  await new Promise<void>((done, failed) => socket.send(text, (error) => (error ? failed(error) : done())));
}

/**
 * Opens a link and sends `frames` over it, one after another. When the relay closes the link, opens a link of another
 * client.
 */
export async function flood(
  { site, signal, count }: AttackContext,
  {
    lane,
    payload,
    frames,
  }: { readonly lane: number; readonly payload?: string; readonly frames: (n: number) => string },
): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    try {
      const socket = await openLink(site, lane, {
        clientId: `flood-${lane}-${n}`,
        ...(payload !== undefined && { payload }),
      });
      count('links');
      for (let i = 0; !signal.aborted && socket.readyState === WebSocket.OPEN; i++) {
        await sendPaced(socket, frames(i));
        count('frames');
        await new Promise((done) => setTimeout(done, 10));
      }
    } catch {
      count('links refused');
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

/** Opens links for attacks, and floods them with frames. */
import { WebSocket } from 'ws';
import { openBareLink } from '../../lib/link.ts';
import { freshToken, HOSTILE, linkUrl, type Site } from '../site.ts';
import type { AttackContext } from './attack.ts';

export type HostileHello = {
  readonly clientId?: string;
  readonly payload?: string;
  readonly token?: string;
};

/** Opens a bare link of the hostile user to the n-th relay. Rejects when the relay refuses the link. */
export async function openLink(site: Site, n: number, hello: HostileHello = {}): Promise<WebSocket> {
  const { clientId, token = await freshToken(HOSTILE) } = hello;
  const instance = clientId !== undefined && { instanceId: `${clientId}-${n}` };
  return openBareLink(linkUrl(site, n), { ...hello, token, ...instance });
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

/** Sends HTTP requests for attacks. */
import { connect, type Socket } from 'node:net';
import { freshToken, HOSTILE, relayUrl, type Site } from '../site.ts';

export type Post = { readonly path: string; readonly body: string; readonly token?: string | null };

/** How long the relay may take to answer, in milliseconds. */
const ANSWER_MS = 30_000;
/**
 * The address of the hostile user's raw sockets. It differs from the honest user's, so that limits by address do not
 * affect the honest user.
 */
const HOSTILE_ADDRESS = '127.0.0.2';

/**
 * Sends a request of the hostile user and returns the status. Rejects without an answer. `token` null: no token is
 * sent.
 */
export async function post(site: Site, n: number, { path, body, token }: Post): Promise<number> {
  const bearer = token === undefined ? await freshToken(HOSTILE) : token;
  const response = await fetch(relayUrl(site, n) + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer !== null && { authorization: `Bearer ${bearer}` }) },
    body,
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a socket that sends `text` and never reads an answer. It stays open until the relay closes it. */
export function openRaw(site: Site, n: number, text: string): Promise<Socket> {
  const { hostname, port } = new URL(relayUrl(site, n));
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host: hostname, port: Number(port), localAddress: HOSTILE_ADDRESS, allowHalfOpen: true });
  socket.pause();
  socket.on('connect', () => {
    socket.write(text);
    resolve(socket);
  });
  socket.on('error', reject);
  return promise;
}

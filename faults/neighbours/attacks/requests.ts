/** Sends HTTP requests for attacks. */
import { connect, type Socket } from 'node:net';
import { freshToken, HOSTILE, relayUrl, type Site } from '../site.ts';

/**
 * A request of the hostile user. `token`: absent for one of the hostile user, null for none. `withinMs`: the request is
 * given up after this many milliseconds.
 */
export type Post = {
  readonly path: string;
  readonly body: string;
  readonly token?: string | null;
  readonly withinMs?: number;
};

/** How long the relay may take to answer, in milliseconds. */
const ANSWER_MS = 30_000;
/**
 * The address of the hostile user's raw sockets. It differs from the honest user's, so that limits by address do not
 * affect the honest user.
 */
const HOSTILE_ADDRESS = '127.0.0.2';
/** The address of the honest user and of the operator, from which their tokens must still be served. */
export const SHARED_ADDRESS = '127.0.0.1';

/** Sends a request of the hostile user and returns the status. Rejects without an answer. */
export async function post(site: Site, n: number, { path, body, token, withinMs }: Post): Promise<number> {
  const bearer = token === undefined ? await freshToken(HOSTILE) : token;
  const response = await fetch(relayUrl(site, n) + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer !== null && { authorization: `Bearer ${bearer}` }) },
    body,
    signal: AbortSignal.timeout(withinMs ?? ANSWER_MS),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a socket that sends `text` and never reads an answer. It stays open until the relay closes it. */
export function openRaw(site: Site, n: number, text: string, from = HOSTILE_ADDRESS): Promise<Socket> {
  const { hostname, port } = new URL(relayUrl(site, n));
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host: hostname, port: Number(port), localAddress: from, allowHalfOpen: true });
  socket.pause();
  socket.on('connect', () => {
    socket.write(text);
    resolve(socket);
  });
  socket.on('error', reject);
  return promise;
}

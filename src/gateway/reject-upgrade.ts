/** Answers a refused WebSocket upgrade with an HTTP problem response, and closes its socket. */
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../core/clock.ts';
import type { Code } from '../core/errors.ts';
import { SUBPROTOCOL } from '../protocol/frame.ts';

export type UpgradeRefusal = {
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  /** The name of the share that is used up. */
  readonly share?: string;
  /** Additional header lines, each `Name: value`. */
  readonly headers?: readonly string[];
};

/** How long a peer may take to close its side of a socket after the last answer, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * Rejects a request on a raw socket with a problem+json response, as the HTTP handlers do, and closes the socket. Does
 * so after one second at the latest, even if the peer does not close its side. Discards further bytes from the peer.
 */
export function rejectUpgrade(
  socket: Duplex,
  { status, code, detail, share, headers = [] }: UpgradeRefusal,
  clock: Clock,
): void {
  const title = STATUS_CODES[status] ?? 'Refused';
  const body = JSON.stringify({ type: 'about:blank', title, status, code, detail, share });
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    'Cache-Control: no-store',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 429 || status === 503 ? ['Retry-After: 1'] : []),
    ...headers,
  ];
  socket.on('error', () => socket.destroy());
  socket.once(
    'close',
    clock.after(LINGER_MS, () => socket.destroy()),
  );
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // With unread bytes the operating system would reset the connection, and the peer would lose the response.
  socket.resume();
}

/** Says whether the client offers the subprotocol that this relay supports. */
export function offersSubprotocol(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === SUBPROTOCOL);
}

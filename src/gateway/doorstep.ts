import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../core/clock.ts';
import type { Code } from '../core/errors.ts';
import { SUBPROTOCOL } from '../protocol/frame.ts';

export type Turned = {
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  /** Which share is used up. */
  readonly share?: string;
  /** Further header lines. */
  readonly headers?: readonly string[];
};

/** How long a peer may take to close its side of a socket that was answered for the last time. */
const LINGER_MS = 1_000;

/**
 * Answers over a bare socket as the other doors answer, problem+json, and closes it: at the latest after a second, whether or not the peer
 * does. What still comes from the peer is not kept.
 */
export function turnAway(socket: Duplex, { status, code, detail, share, headers = [] }: Turned, clock: Clock): void {
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
  // Bytes that nobody reads would make the system reset the connection, and the answer with it.
  socket.resume();
}

/** Whether the client offers the one subprotocol that this relay speaks. */
export function offersSubprotocol(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === SUBPROTOCOL);
}

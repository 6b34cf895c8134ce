import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Code } from '../core/errors.ts';
import { SUBPROTOCOL } from '../protocol/frame.ts';

export type Turned = {
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  /** Which share is used up. */
  readonly share?: string;
};

/** Answers an upgrade that is not granted, as the other doors answer: problem+json. The socket is then done with. */
export function turnAway(socket: Duplex, { status, code, detail, share }: Turned): void {
  const title = STATUS_CODES[status] ?? 'Refused';
  const body = JSON.stringify({ type: 'about:blank', title, status, code, detail, share });
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 429 || status === 503 ? ['Retry-After: 1'] : []),
  ];
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Whether the client offers the one subprotocol that this relay speaks. */
export function offersSubprotocol(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === SUBPROTOCOL);
}

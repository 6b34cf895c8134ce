/** Answers input that the HTTP parser rejects. No such input reaches a handler. */
import type { Duplex } from 'node:stream';
import type { Clock } from '../core/clock.ts';
import { rejectUpgrade, type UpgradeRefusal } from '../gateway/reject-upgrade.ts';
import { isAnswering } from './socket-progress.ts';

/** An error of the HTTP parser, or a timeout of the server. */
export type ParseError = Error & { readonly code?: string };

const HEADERS_TOO_LARGE: UpgradeRefusal = {
  status: 431,
  code: 'payload_too_large',
  detail: 'The headers of the request are too large.',
};
const TOO_SLOW: UpgradeRefusal = {
  status: 408,
  code: 'invalid_argument',
  detail: 'The request took too long to arrive.',
};
const NOT_HTTP: UpgradeRefusal = {
  status: 400,
  code: 'invalid_argument',
  detail: 'The bytes are not a valid HTTP request.',
};
const TURNED: Readonly<Record<string, UpgradeRefusal>> = {
  HPE_HEADER_OVERFLOW: HEADERS_TOO_LARGE,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { ...HEADERS_TOO_LARGE, status: 413, detail: 'The chunk extensions are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: TOO_SLOW,
};

/** Answers input that is not a valid request, once per socket, and closes the socket. */
export function createBrokenAnswers(clock: Clock): (error: ParseError, socket: Duplex) => void {
  const answered = new WeakSet<Duplex>();
  return (error, socket) => {
    // Each further chunk of a broken request fails again; it must not interrupt the answer that is being sent.
    if (answered.has(socket)) return;
    if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) return void socket.destroy();
    answered.add(socket);
    rejectUpgrade(socket, TURNED[error.code ?? ''] ?? NOT_HTTP, clock);
  };
}

/** Refuses requests to the control server that do not come from an authorized local program. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { problem, type Problem } from './problems.ts';

/** The parts of a request that are checked. */
type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
  readonly socket: Pick<Socket, 'remoteAddress'>;
};

/** `port`: the port on which the server listens, which the Host header must name. */
type Rules = { readonly port: number; readonly token: string };

/**
 * Checks a request by its peer address and headers, before its body is read. Returns the refusal, or null when the
 * request is accepted. The first three checks keep other machines and web pages out. A page whose name was made to
 * resolve to this machine (DNS rebinding) still sends its own name as Host. Browsers send Origin with every request
 * that can change state. Forwarded headers are ignored.
 */
export function refusalOf(request: RequestHead, { port, token }: Rules): Problem | null {
  if (!isLoopback(request.socket.remoteAddress)) {
    return problem('forbidden', 'Only programs on this machine may send requests.');
  }
  if (!namesLoopback(request, port)) return problem('forbidden', 'The Host header does not name this server.');
  if (request.headers.origin !== undefined) return problem('forbidden', 'Web pages may not send requests.');
  if (!bears(request, token)) return problem('unauthenticated', 'The bearer token is missing or wrong.');
  return null;
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address ?? '');
}

/**
 * Whether the request has exactly one Host header, which names this machine and the server's port. Reads the raw
 * headers, because `headers` contains only the first of several Host headers.
 */
function namesLoopback({ rawHeaders }: RequestHead, port: number): boolean {
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host');
  const [host = ''] = hosts;
  const names = ['127.0.0.1', '[::1]', 'localhost'];
  const known = names.some((name) => host.toLowerCase() === `${name}:${port}`);
  const plain = port === 80 && names.includes(host.toLowerCase());
  return hosts.length === 1 && (known || plain);
}

/** Whether the request bears the token. Compares digests, which have equal lengths, in constant time. */
function bears({ headers }: RequestHead, token: string): boolean {
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
